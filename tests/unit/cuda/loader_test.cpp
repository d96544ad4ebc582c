// SPDX-License-Identifier: Apache-2.0
#include "cuda/loader.hpp"
#include "base/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace kiln::cuda {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

loader_options nothing_here() {
    loader_options out;
    out.environment.kiln_cuda_path = "/nonexistent/cuda";
    out.driver_names = {"libcuda-is-not-there.so.1"};
    return out;
}

TEST(loader, no_driver_is_no_device_with_a_remedy) {
    loader here{nothing_here()};
    for (int i = 0; i < 2; ++i) {
        auto const driver = here.started_driver();
        ASSERT_FALSE(driver);
        EXPECT_EQ(driver.error().code(), errc::no_device);
        EXPECT_THAT(driver.error().message(),
                    AllOf(HasSubstr("libcuda-is-not-there.so.1"), HasSubstr("install NVIDIA's driver")));
    }
    EXPECT_EQ(here.context_of(0).error().code(), errc::no_device);
}

TEST(loader, a_library_that_is_no_driver) {
    auto options = nothing_here();
    options.driver_names = {"libm.so.6"};
    EXPECT_EQ(loader{options}.driver().error().code(), errc::unsupported);
}

TEST(loader, no_toolkit_tells_where_was_looked) {
    loader here{nothing_here()};
    auto const nvrtc = here.nvrtc();
    ASSERT_FALSE(nvrtc);
    EXPECT_EQ(nvrtc.error().code(), errc::not_found);
    EXPECT_THAT(
        nvrtc.error().message(),
        AllOf(HasSubstr("NVRTC (libnvrtc.so.13, libnvrtc.so.12) not found in KILN_CUDA_PATH (/nonexistent/cuda)"),
              HasSubstr("set KILN_CUDA_PATH")));
    EXPECT_THAT(here.nvjitlink().error().message(),
                HasSubstr("nvJitLink (libnvJitLink.so.13, libnvJitLink.so.12) not found"));
}

TEST(loader, a_file_of_the_right_name_that_is_no_library_is_mentioned) {
    auto const scratch = base::temporary_directory::make().value();
    fs::create_directories(scratch.path() / "lib64");
    auto const file = scratch.path() / "lib64/libnvrtc.so.13";
    ASSERT_TRUE(base::replace_file(file, base::as_bytes("not a library")));
    auto options = nothing_here();
    options.environment.kiln_cuda_path = scratch.path();
    EXPECT_THAT(loader{options}.nvrtc().error().message(), HasSubstr(file.string()));
}

TEST(loader, handles_learn_that_the_process_ends_only_after_the_driver_started) {
    loader here{nothing_here()};
    here.note_exit();
    EXPECT_FALSE(here.driver());
}

// With a toolkit: KILN_TEST_CUDA_PATH or what the machine has.
class toolkit_test : public testing::Test {
protected:
    void SetUp() override {
        if (!here_.nvrtc()) GTEST_SKIP() << here_.nvrtc().error().message();
    }
    loader here_{{.environment = search_environment::process()}};
};

TEST_F(toolkit_test, nvrtc_tells_version_identity_and_targets) {
    auto const api = here_.nvrtc().value();
    EXPECT_GE(api->major * 100 + api->minor, 1208);
    EXPECT_THAT(api->library.identity.build_id, MatchesRegex("[0-9a-f]{40}|sha256:[0-9a-f]{64}"));
    EXPECT_EQ(api->toolchain(), fmt::format("nvrtc {}.{} {}", api->major, api->minor, api->library.identity.build_id));
    EXPECT_NE(api->library.map->l_addr, 0U);
    EXPECT_EQ(identify_file(api->library.identity.file).value().build_id, api->library.identity.build_id);
    auto const archs = api->supported_archs();
    ASSERT_TRUE(archs) << archs.error().message();
    EXPECT_THAT(*archs, testing::Contains(90));
}

TEST_F(toolkit_test, the_same_file_gives_the_same_table_to_all_threads) {
    auto const file = here_.nvrtc().value()->library.identity.file;
    std::vector<std::shared_ptr<nvrtc_api const>> tables(8);
    {
        std::vector<std::jthread> threads;
        for (auto& slot : tables) threads.emplace_back([&] { slot = here_.nvrtc_at(file).value(); });
    }
    EXPECT_THAT(tables, testing::Each(tables.front()));
    EXPECT_EQ(tables.front()->toolchain(), here_.nvrtc().value()->toolchain());
}

TEST_F(toolkit_test, a_file_that_is_not_there_does_not_lead_elsewhere) {
    EXPECT_EQ(here_.nvrtc_at("/nonexistent/libnvrtc.so.13").error().code(), errc::not_found);
}

TEST_F(toolkit_test, nvjitlink_resolves_and_answers) {
    auto const found = here_.nvjitlink();
    if (!found) GTEST_SKIP() << found.error().message();
    auto const& api = **found;
    EXPECT_GE(api.major, 12U);
    nvJitLinkHandle handle = nullptr;
    char const* const options[] = {"-arch=sm_90"};
    ASSERT_EQ(api.create(&handle, 1, options), NVJITLINK_SUCCESS);
    EXPECT_EQ(api.destroy(&handle), NVJITLINK_SUCCESS);
    char const* const wrong[] = {"-arch=sm_90", "-no-such-option"};
    EXPECT_NE(api.create(&handle, 2, wrong), NVJITLINK_SUCCESS);
    ASSERT_NE(handle, nullptr) << "a failed create leaves a handle for its log, which must be destroyed too";
    EXPECT_EQ(api.destroy(&handle), NVJITLINK_SUCCESS);
}

TEST_F(toolkit_test, compiles_with_the_builtins_beside_it) {
    auto const api = here_.nvrtc().value();
    nvrtcProgram program = nullptr;
    ASSERT_EQ(api->create_program(&program, "extern \"C\" __global__ void f(int* p) { *p = 1; }", "f.cu", 0, nullptr,
                                  nullptr),
              NVRTC_SUCCESS);
    char const* const options[] = {"-arch=sm_90"};
    EXPECT_EQ(api->compile_program(program, 1, options), NVRTC_SUCCESS);
    std::size_t size = 0;
    EXPECT_EQ(api->get_cubin_size(program, &size), NVRTC_SUCCESS);
    EXPECT_GT(size, 0U);
    EXPECT_EQ(api->destroy_program(&program), NVRTC_SUCCESS);
}

TEST_F(toolkit_test, headers_are_found) {
    auto const includes = here_.search().toolkit_includes();
    ASSERT_FALSE(includes.empty()) << here_.search().tried();
    EXPECT_TRUE(fs::exists(includes.back() / "cuda_fp16.h"));
}

}  // namespace
}  // namespace kiln::cuda
