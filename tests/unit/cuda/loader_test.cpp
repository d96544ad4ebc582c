// SPDX-License-Identifier: Apache-2.0
#include "cuda/loader.hpp"
#include "base/files.hpp"
#include "cuda/library_search.hpp"
#include "cuda/nvrtc_builtins.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::cuda {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

loader_options nothing_here() {
    loader_options out;
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

// In a process that has not loaded it: a thread loads a library that takes its time while another forks, whose child asks for the same.
[[noreturn]] void fork_while_a_driver_is_loaded() {
    ::alarm(30);
    loader_options options;
    options.driver_names = {"libcurl.so.4"};
    loader here{options};
    std::thread loads{[&] { (void)here.driver(); }};
    ::usleep(1'000);
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(5);
        ::_exit(here.driver() ? 1 : 0);  // no driver, or not there at all
    }
    int status = -1;
    (void)::waitpid(child, &status, 0);
    loads.join();
    ::_exit(status == 0 ? 0 : 1);
}

// fork() waits until the library is loaded, and comes then, when whoever loaded it is not at his end yet.
TEST(loader, a_child_whose_parent_was_loading_a_driver_does_not_wait_for_it) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer ends a child with threads of its parent";
#endif
    for (int n = 0; n < 30; ++n) {
        auto const fresh = ::fork();
        ASSERT_GE(fresh, 0);
        if (fresh == 0) {
            if (::dlopen("libcurl.so.4", RTLD_NOW | RTLD_NOLOAD) != nullptr) ::_exit(77);
            fork_while_a_driver_is_loaded();
        }
        int status = -1;
        ASSERT_EQ(::waitpid(fresh, &status, 0), fresh);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "libcurl is loaded already";
        ASSERT_EQ(status, 0) << n;
    }
}

TEST(loader, a_compiler_that_could_not_be_opened_is_tried_again) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "libnvJitLink.so.13";
    loader here{nothing_here()};
    EXPECT_EQ(here.nvjitlink_at(file).error().code(), errc::not_found);
    ASSERT_TRUE(base::replace_file(file, base::as_bytes("not a library")));
    EXPECT_THAT(here.nvjitlink_at(file).error().message(), HasSubstr(file.string()));
    fs::copy_file(fs::canonical("/proc/self/exe"), file, fs::copy_options::overwrite_existing);
    EXPECT_NE(here.nvjitlink_at(file).error().message(), here.nvjitlink_at("/nonexistent").error().message());
}

TEST(loader, handles_learn_that_the_process_ends_only_after_the_driver_started) {
    loader here{nothing_here()};
    here.note_exit();
    EXPECT_FALSE(here.driver());
}

// With the toolkit the tests are built with.
class toolkit_test : public testing::Test {
protected:
    void SetUp() override {
        if (nvrtc_file().empty()) GTEST_SKIP() << "NVRTC not found in " << search().tried();
    }
    [[nodiscard]] static library_search search() {
        auto environment = search_environment::process(base::config::load());
        environment.kiln_cuda_path = KILN_TEST_CUDA_PATH;
        return library_search{environment};
    }
    [[nodiscard]] static fs::path first_of(std::span<std::string_view const> sonames) {
        auto const all = search().candidates(sonames);
        return all.empty() ? fs::path{} : all.front().file;
    }
    [[nodiscard]] static fs::path nvrtc_file() { return first_of(nvrtc_sonames); }
    [[nodiscard]] std::shared_ptr<nvrtc_api const> nvrtc() { return here_.nvrtc_at(nvrtc_file()).value(); }

    loader here_{{}};
};

TEST_F(toolkit_test, nvrtc_tells_version_identity_and_targets) {
    auto const api = nvrtc();
    EXPECT_GE(api->major * 100 + api->minor, 1208);
    EXPECT_THAT(api->library.identity.build_id, MatchesRegex("[0-9a-f]{40}|sha256:[0-9a-f]{64}"));
    EXPECT_EQ(api->builtins, find_builtins(nvrtc_file()).value().content);
    EXPECT_NE(api->library.map->l_addr, 0U);
    EXPECT_EQ(identify_file(api->library.identity.file).value().build_id, api->library.identity.build_id);
    auto const archs = api->supported_archs();
    ASSERT_TRUE(archs) << archs.error().message();
    EXPECT_THAT(*archs, testing::Contains(90));
}

TEST_F(toolkit_test, the_same_file_gives_the_same_table_to_all_threads) {
    auto const file = nvrtc_file();
    std::vector<std::shared_ptr<nvrtc_api const>> tables(8);
    {
        std::vector<std::jthread> threads;
        for (auto& slot : tables) threads.emplace_back([&] { slot = here_.nvrtc_at(file).value(); });
    }
    EXPECT_THAT(tables, testing::Each(tables.front()));
}

TEST_F(toolkit_test, a_file_that_is_not_there_does_not_lead_elsewhere) {
    EXPECT_EQ(here_.nvrtc_at("/nonexistent/libnvrtc.so.13").error().code(), errc::not_found);
}

TEST_F(toolkit_test, nvjitlink_resolves_and_answers) {
    auto const found = here_.nvjitlink_at(first_of(nvjitlink_sonames));
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
    auto const api = nvrtc();
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
    auto const includes = search().toolkit_includes();
    ASSERT_FALSE(includes.empty()) << search().tried();
    EXPECT_TRUE(fs::exists(includes.back() / "cuda_fp16.h"));
}

}  // namespace
}  // namespace kiln::cuda
