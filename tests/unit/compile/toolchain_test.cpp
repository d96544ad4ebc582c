// SPDX-License-Identifier: Apache-2.0
#include "compile/toolchain.hpp"

#include "base/digest.hpp"
#include "base/files.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fstream>
#include <link.h>
#include <sys/stat.h>

namespace kiln::compile {

namespace {

namespace fs = std::filesystem;

// A shared object that is surely here, has a build id, and is nobody's interceptor.
std::filesystem::path some_library() {
    void* const handle = ::dlopen("libm.so.6", RTLD_NOW);
    ::link_map* map = nullptr;
    EXPECT_TRUE(handle != nullptr && ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0);
    return map->l_name;
}

std::string raw_bytes(std::string const& hex) {
    std::string out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return out;
}

void set_time_zero(std::filesystem::path const& file) {
    struct ::timespec const zero[2] = {{0, 0}, {0, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), zero, 0), 0);
}

}  // namespace

TEST(toolchain, a_librarys_name_tells_its_major_version) {
    auto const scratch = base::temporary_directory::make().value();
    auto const link = scratch.path() / "libnvJitLink.so";
    std::filesystem::create_symlink(scratch.path() / "libnvJitLink.so.13.0.88", link);
    EXPECT_EQ(major_of(link), 0) << "a link to nowhere";
    std::ofstream{scratch.path() / "libnvJitLink.so.13.0.88"} << "x";
    EXPECT_EQ(major_of(link), 13);
    EXPECT_EQ(major_of("/cuda/lib64/libnvJitLink.so.12"), 12);
    EXPECT_EQ(major_of("/cuda/lib64/libnvJitLink.so"), 0);
    EXPECT_EQ(major_of(""), 0);
}

TEST(faults, V1_V2_the_compiler_is_known_by_its_build_id_and_not_by_name_time_or_size) {
    auto const scratch = base::temporary_directory::make().value();
    auto bytes = *base::read_file(some_library()).value();
    auto const one = scratch.path() / "one.so";
    auto const two = scratch.path() / "two.so";
    base::replace_file(one, bytes).value();
    auto const id = nvjitlink_at(one).value().toolchain;
    ASSERT_EQ(id.size(), std::string{"nvjitlink "}.size() + 40) << id;

    // Another build: same size, same time, one byte of the id differs.
    auto const text = base::as_text(bytes);
    auto const at = text.find(raw_bytes(id.substr(id.find(' ') + 1)));
    ASSERT_NE(at, text.npos);
    bytes[at] ^= std::byte{1};
    base::replace_file(two, bytes).value();
    set_time_zero(one);
    set_time_zero(two);
    EXPECT_EQ(nvjitlink_at(one).value().toolchain, id) << "a time of zero changes nothing";
    EXPECT_NE(nvjitlink_at(two).value().toolchain, id);
}

// A library that stands for NVRTC, with what stands for its builtins beside it.
class toolkit_of_files : public testing::Test {
protected:
    void SetUp() override {
        fs::create_directories(lib());
        fs::copy_file(fs::canonical(some_library()), nvrtc());
    }
    [[nodiscard]] fs::path lib() const { return scratch_.path() / "lib64"; }
    [[nodiscard]] fs::path nvrtc() const { return lib() / "libnvrtc.so.13"; }
    void put(fs::path const& file, std::string_view text) { base::replace_file(file, base::as_bytes(text)).value(); }
    [[nodiscard]] result<tool> find() const {
        cuda::search_environment environment;
        environment.kiln_cuda_path = scratch_.path();
        return find_nvrtc(cuda::library_search{environment});
    }
    base::temporary_directory scratch_ = base::temporary_directory::make().value();
};

TEST_F(toolkit_of_files, the_builtins_beside_nvrtc_are_part_of_its_identity) {
    put(lib() / "libnvrtc-builtins.so.13.0", "one");
    auto const first = find().value();
    EXPECT_EQ(first.path, nvrtc());
    EXPECT_NE(first.toolchain.find(" builtins " + base::sha256_of("one").hex().substr(0, 32)), std::string::npos);
    put(lib() / "libnvrtc-builtins.so.13.0", "two");
    EXPECT_NE(find()->toolchain, first.toolchain);
    put(lib() / "libnvrtc-builtins.so.13.0", "one");
    fs::create_symlink("libnvrtc-builtins.so.13.0", lib() / "libnvrtc-builtins.so");
    EXPECT_EQ(find()->toolchain, first.toolchain) << "a link is no second library";
    put(lib() / "libnvrtc-builtins.so.13.1", "three");
    EXPECT_NE(find()->toolchain, first.toolchain) << "NVRTC may ask for either";
}

TEST_F(toolkit_of_files, a_link_to_nvrtc_has_the_builtins_of_what_it_leads_to) {
    put(lib() / "libnvrtc-builtins.so.13.0", "one");
    auto const elsewhere = scratch_.path() / "elsewhere";
    fs::create_directories(elsewhere);
    fs::create_symlink(nvrtc(), elsewhere / "libnvrtc.so.13");
    EXPECT_EQ(nvrtc_at(elsewhere / "libnvrtc.so.13").value().toolchain, find()->toolchain);
    put(elsewhere / "libnvrtc-builtins.so.13.0", "two");
    EXPECT_NE(nvrtc_at(elsewhere / "libnvrtc.so.13").value().toolchain, find()->toolchain);
}

TEST_F(toolkit_of_files, builtins_that_cannot_be_told_are_no_fewer_builtins) {
    put(lib() / "libnvrtc-builtins.so.13.0", "one");
    fs::create_symlink("nowhere", lib() / "libnvrtc-builtins.so.12");
    EXPECT_TRUE(nvrtc_at(nvrtc())) << "a link to nothing is nothing";
    fs::create_symlink("libnvrtc-builtins.so.13.1",
                       lib() / "libnvrtc-builtins.so.13.1");  // a loop: not known what it is
    auto const r = nvrtc_at(nvrtc());
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().status(), ELOOP);
}

TEST_F(toolkit_of_files, nvrtc_without_builtins_is_passed_over_and_named) {
    auto const r = find();
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message().find(nvrtc().native() + ": there is no libnvrtc-builtins.so beside it"),
              std::string::npos)
        << r.error().message();
}

TEST(toolchain, nothing_found_names_the_places_and_the_remedy) {
    cuda::search_environment none;
    none.kiln_cuda_path = "/nowhere/cuda";
    auto const r = find_nvrtc(cuda::library_search{none});
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message().find("/nowhere/cuda"), std::string::npos);
    EXPECT_NE(r.error().message().find("pip install"), std::string::npos);
}

}  // namespace kiln::compile
