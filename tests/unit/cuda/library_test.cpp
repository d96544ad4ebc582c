// SPDX-License-Identifier: Apache-2.0
#include "unit/cuda/fake_driver_test.hpp"

#include <elf.h>

namespace kiln::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class library_test : public fake_driver_test {
protected:
    [[nodiscard]] auto load(std::vector<std::string> const& names, driver_api api = fake::table()) {
        return library::make(context_on(table(std::move(api))), fake::cubin(), names);
    }
};

TEST_F(library_test, resolves_and_loads_everything_at_once) {
    auto const loaded = load({"one"});
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_THAT(driver_.take(), ElementsAre("device_get_count", "retain 0", "library_load_data",
                                            "library_get_kernel one", "kernel_get_function", "func_load"));
    EXPECT_EQ((*loaded)->find("one").value()->resources().registers, 24);
    EXPECT_THAT(driver_.take(), ElementsAre()) << "finding asks the driver nothing";
}

TEST_F(library_test, without_names_all_kernels_are_loaded) {
    auto const loaded = load({});
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_THAT((*loaded)->names(), ElementsAre("one", "two"));
}

TEST_F(library_test, a_driver_without_cuFuncLoad_still_works) {
    auto old = fake::table();
    old.func_load = nullptr;
    EXPECT_TRUE(load({"one"}, old));
}

TEST_F(library_test, a_driver_without_libraries_is_told_by_version) {
    auto old = fake::table();
    old.version = 11080;
    old.library_load_data = nullptr;
    auto const loaded = load({"one"}, old);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), errc::unsupported);
    EXPECT_THAT(loaded.error().message(),
                HasSubstr("cuLibraryLoadData: driver 12.0 or newer is needed; this one is 11.8"));
}

TEST_F(library_test, a_function_keeps_library_and_context_alive) {
    auto loaded = load({"one"}).value();
    auto found = loaded->find("one").value();
    loaded.reset();
    static_cast<void>(driver_.take());
    EXPECT_EQ(found->where().device(), 0);
    found.reset();
    EXPECT_THAT(driver_.take(), ElementsAre("library_unload", "release 0"));
}

TEST_F(library_test, a_name_that_is_not_there_leaves_nothing_behind) {
    auto const loaded = load({"one", "three"});
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), errc::not_found);
    EXPECT_THAT(loaded.error().message(), HasSubstr("kernel 'three'"));
    EXPECT_THAT(driver_.take(), testing::IsSupersetOf({"library_unload", "release 0"}));
    EXPECT_TRUE(fake::stack.empty());
}

TEST_F(library_test, another_gpus_image_names_this_gpu) {
    driver_.failing["kernel_get_function"] = CUDA_ERROR_NO_BINARY_FOR_GPU;
    auto const loaded = load({"one"});
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), errc::unsupported);
    EXPECT_THAT(loaded.error().message(), HasSubstr("device 0 (Fake GPU, sm_90)"));
}

TEST_F(library_test, the_jits_words_are_kept) {
    driver_.failing["library_load_data"] = CUDA_ERROR_INVALID_PTX;
    driver_.jit_log = "ptxas fatal";
    std::string const ptx = ".version 8.0\nnonsense";
    auto const loaded = library::make(context_on(table()), base::as_bytes(ptx));
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), errc::compile_failed);
    EXPECT_EQ(loaded.error().log(), "ptxas fatal");
    EXPECT_THAT(driver_.take(), testing::Not(testing::Contains("library_unload"))) << "there is nothing to unload";
}

TEST_F(library_test, asking_for_a_kernel_that_was_not_loaded_lists_those_that_were) {
    auto const found = load({"one"}).value()->find("two");
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().message(), "no kernel 'two' was loaded; there are: one");
}

// A cubin with one section of 100 bytes behind its header.
base::bytes cubin_with_section() {
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_shoff = sizeof head + 100;
    head.e_shnum = 1;
    head.e_shentsize = sizeof(Elf64_Shdr);
    Elf64_Shdr section{};
    section.sh_type = SHT_PROGBITS;
    section.sh_offset = sizeof head;
    section.sh_size = 100;
    base::bytes out(head.e_shoff + sizeof section);
    std::memcpy(out.data(), &head, sizeof head);
    std::memcpy(out.data() + head.e_shoff, &section, sizeof section);
    return out;
}

TEST(check_image, a_cubin_cut_anywhere_is_corrupt) {
    auto const whole = cubin_with_section();
    ASSERT_TRUE(check_image(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) {
        auto const cut = check_image(base::byte_span{whole}.first(size));
        ASSERT_FALSE(cut) << size;
        EXPECT_EQ(cut.error().code(), errc::corrupt);
    }
}

TEST(check_image, a_section_past_the_end_or_an_offset_that_wraps_is_corrupt) {
    for (std::uint64_t const size : {std::uint64_t{165}, ~std::uint64_t{0}}) {
        auto image = cubin_with_section();
        std::memcpy(image.data() + 164 + offsetof(Elf64_Shdr, sh_size), &size, sizeof size);
        EXPECT_FALSE(check_image(image)) << size;
    }
    auto image = cubin_with_section();
    auto const far = ~std::uint64_t{0} - 8;
    std::memcpy(image.data() + offsetof(Elf64_Ehdr, e_shoff), &far, sizeof far);
    EXPECT_FALSE(check_image(image));
}

TEST(check_image, a_fatbin_shorter_than_its_header_says) {
    base::bytes image(16 + 8);
    std::uint32_t const magic = 0xBA55ED50;
    std::uint16_t const header = 16;
    std::uint64_t const body = 8;
    std::memcpy(image.data(), &magic, 4);
    std::memcpy(image.data() + 6, &header, 2);
    std::memcpy(image.data() + 8, &body, 8);
    EXPECT_TRUE(check_image(image));
    image.pop_back();
    EXPECT_FALSE(check_image(image));
}

TEST(check_image, what_is_neither_is_not_given_to_the_driver) {
    EXPECT_TRUE(check_image(base::as_bytes("//\n.version 8.0\n")));
    EXPECT_FALSE(check_image(base::as_bytes("hello")));
    EXPECT_FALSE(check_image({}));
}

}  // namespace
}  // namespace kiln::cuda
