// SPDX-License-Identifier: Apache-2.0
#include "cuda/library.hpp"

#include "cuda/nvrtc_api.hpp"
#include "device/device_fixture.hpp"
#include "device/ptx.hpp"
#include "engine/engine_state.hpp"

namespace kiln::device_tests {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

class library_test : public on_device {
protected:
    [[nodiscard]] auto load(base::byte_span image, std::vector<std::string> const& names = {}) {
        return cuda::library::make(cuda::context::of(0).value(), image, names);
    }
};

// A cubin of an empty kernel `f`; skips the test where there is no NVRTC.
base::bytes compile_for(std::string const& arch) {
    auto const found = cuda::load_nvrtc(engine::process().internals().tools().nvrtc);
    if (!found) return {};
    auto const& api = **found;
    nvrtcProgram program = nullptr;
    api.create_program(&program, "extern \"C\" __global__ void f(int* p) { *p = 1; }", "f.cu", 0, nullptr, nullptr);
    auto const option = "-arch=" + arch;
    char const* const options[] = {option.c_str()};
    base::bytes out;
    if (api.compile_program(program, 1, options) == NVRTC_SUCCESS) {
        std::size_t size = 0;
        api.get_cubin_size(program, &size);
        out.resize(size);
        api.get_cubin(program, reinterpret_cast<char*>(out.data()));
    }
    api.destroy_program(&program);
    return out;
}

TEST_F(library_test, lists_every_kernel_of_an_image) {
    if (info_.driver_version < 12040) GTEST_SKIP() << "the driver cannot list kernels";
    auto const loaded = load(kernels_image());
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_THAT((*loaded)->names(), UnorderedElementsAre("add_value", "shared_last", "nothing"));
}

TEST_F(library_test, a_cubin_of_this_gpu_loads) {
    auto const image = compile_for(info_.target());
    if (image.empty()) GTEST_SKIP() << "no NVRTC for " << info_.target();
    auto const loaded = load(image, {"f"});
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_GT((*loaded)->find("f").value()->resources().registers, 0);
}

TEST_F(library_test, a_cubin_of_another_gpu_is_refused_by_name) {
    auto const image = compile_for(info_.major == 7 ? "sm_90" : "sm_75");
    if (image.empty()) GTEST_SKIP() << "no NVRTC";
    auto const loaded = load(image, {"f"});
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), errc::unsupported) << loaded.error().message();
    EXPECT_THAT(loaded.error().message(), HasSubstr(info_.target()));
}

TEST_F(library_test, a_cubin_cut_short_never_reaches_the_driver) {
    auto const image = compile_for(info_.target());
    if (image.empty()) GTEST_SKIP() << "no NVRTC for " << info_.target();
    auto const loaded = load(base::byte_span{image}.first(image.size() / 2), {"f"});
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), errc::corrupt);
}

TEST_F(library_test, a_name_that_is_not_in_the_image) {
    auto const loaded = load(kernels_image(), {"add_value", "no_such_kernel"});
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), errc::not_found) << loaded.error().message();
    EXPECT_THAT(loaded.error().message(), HasSubstr("no_such_kernel"));
}

TEST_F(library_test, ptx_that_is_wrong_comes_back_with_the_drivers_words) {
    auto const loaded = load(
        base::as_bytes(".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry f() { nonsense; }\n"), {"f"});
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), errc::compile_failed) << loaded.error().message() << '\n' << loaded.error().log();
}

TEST_F(library_test, loads_and_unloads_without_end) {
    for (int i = 0; i < 200; ++i) {
        auto const loaded = load(kernels_image(), {"nothing"});
        ASSERT_TRUE(loaded) << i << ": " << loaded.error().message();
    }
}

}  // namespace
}  // namespace kiln::device_tests
