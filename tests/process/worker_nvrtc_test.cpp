// SPDX-License-Identifier: Apache-2.0
// The pool with the real kiln-worker and the real compiler.
#include "base/clock.hpp"
#include "real_worker_fixture.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

namespace kiln::compile::testing {

using ::testing::HasSubstr;

class nvrtc_pool_test : public real_worker_test {
protected:
    void SetUp() override {
        real_worker_test::SetUp();
        if (!tools_.nvrtc.empty()) open_real(2);
    }
    [[nodiscard]] job kernel(std::string const& name, std::string body = "x[0] = 1;") const {
        unit u{.name = name,
               .source = "extern \"C\" __global__ void " + name + "(int* x) { " + std::move(body) + " }\n",
               .kernels = {name},
               .options = {"--no-cache"}};
        return {tools_, compile_job{std::move(u), target::parse("sm_90").value()}};
    }
    // A kernel that keeps the compiler busy for about a second.
    [[nodiscard]] job long_kernel(std::string const& name) const {
        std::string body =
            "int s = x[0];\n#pragma unroll\nfor (int i = 0; i < 3000; ++i) s = s * s + x[i] * (s >> (i % 7));\nx[1] = "
            "s;";
        return kernel(name, std::move(body));
    }
    static bool host_maps_nvrtc() {
        std::ifstream maps{"/proc/self/maps"};
        std::string const text{std::istreambuf_iterator<char>{maps}, {}};
        return text.find("libnvrtc") != text.npos;
    }
};

TEST_F(nvrtc_pool_test, compiles_without_nvrtc_in_the_host) {
    auto const made = submit(kernel("k")).get();
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_EQ(made->kernels.at(0).lowered, "k");
    EXPECT_GT(made->kernels.at(0).registers, 0);
    EXPECT_FALSE(made->image.empty());
    EXPECT_FALSE(host_maps_nvrtc());
    EXPECT_EQ(pool_->count().in_process, 0u);
}

TEST_F(nvrtc_pool_test, a_compile_error_has_the_compilers_log) {
    auto const failed = submit(kernel("k", "this is no statement")).get();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), errc::compile_failed);
    EXPECT_THAT(failed.error().log(), HasSubstr("error"));
    EXPECT_TRUE(submit(kernel("k")).get());
    EXPECT_EQ(pool_->count().retried, 0u);
}

TEST_F(nvrtc_pool_test, kill_9_of_every_worker_in_the_middle_of_twenty_compiles) {
    std::vector<std::future<outcome>> all;
    for (int i = 0; i < 20; ++i) all.push_back(submit(long_kernel(fmt::format("k{}", i))));
    std::set<int> killed;
    for (int round = 0; round < 3; ++round) {
        std::vector<int> busy;
        ASSERT_TRUE(eventually([&] {
            busy.clear();
            for (auto const& w : pool_->workers()) {
                if (w.busy && !killed.contains(w.pid)) busy.push_back(w.pid);
            }
            return busy.size() == 2;
        }));
        for (auto const pid : busy) {
            send_signal(pid, SIGKILL);
            killed.insert(pid);
        }
    }
    for (auto& one : all) {
        auto const made = one.get();
        EXPECT_TRUE(made) << made.error().message();
    }
    EXPECT_EQ(pool_->count().done, 20u);
    EXPECT_EQ(pool_->count().died, 6u);
    EXPECT_EQ(pool_->count().in_process, 0u);
}

TEST_F(nvrtc_pool_test, closing_in_the_middle_of_a_compile_is_quick) {
    auto running = submit(long_kernel("k"));
    ASSERT_TRUE(eventually([&] { return std::ranges::any_of(pool_->workers(), &worker_pool::worker_state::busy); }));
    base::stopwatch const watch;
    pool_.reset();
    EXPECT_LT(watch.ms(), 200 * slowness);
    EXPECT_EQ(running.get().error().code(), errc::cancelled);
}

// How NVRTC takes a lack of memory depends on where it meets it: it says so in its log, fails without a word, throws or
// dies; with less still it cannot even be loaded. It must never look like an error in the source.
TEST_F(nvrtc_pool_test, g3_a_bound_too_small_for_the_compiler_is_a_lack_of_memory) {
    if (slowness > 1) GTEST_SKIP() << "sanitizers take memory of their own";
    int lacked = 0;
    for (std::uint64_t mib = 12; mib <= 30; ++mib) {  // where it meets it differs from run to run by more than a step
        open_real(1, mib << 20);
        auto const made = submit(kernel("k")).get();
        if (made) continue;
        EXPECT_NE(made.error().code(), errc::compile_failed) << mib << " MiB: " << made.error().message();
        lacked += made.error().code() == errc::out_of_memory ? 1 : 0;
    }
    EXPECT_GT(lacked, 0);
}

}  // namespace kiln::compile::testing
