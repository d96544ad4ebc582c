// SPDX-License-Identifier: Apache-2.0
#include "runtime_fixture.hpp"

#include <atomic>
#include <cstdlib>
#include <future>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::runtime {

using execution = runtime_test;

TEST_F(execution, mode_is_the_explicit_call_then_the_environment_then_auto) {
    reload_settings();
    EXPECT_EQ(requested_mode(), execution_mode::automatic);
    ::setenv("KILN_EXECUTION_MODE", "cpu", 1);
    reload_settings();
    EXPECT_EQ(requested_mode(), execution_mode::cpu);
    set_execution_mode(execution_mode::gpu);
    EXPECT_EQ(requested_mode(), execution_mode::gpu);
    {
        scoped_execution_mode const inner{execution_mode::cpu};
        EXPECT_EQ(requested_mode(), execution_mode::cpu);
        std::jthread{[] { EXPECT_EQ(requested_mode(), execution_mode::gpu) << "a scope is its thread's own"; }};
    }
    EXPECT_EQ(requested_mode(), execution_mode::gpu);
    set_execution_mode({});
    EXPECT_EQ(requested_mode(), execution_mode::cpu);
    ::unsetenv("KILN_EXECUTION_MODE");
    reload_settings();
}

TEST_F(execution, a_mode_that_is_none_is_refused_with_the_names_of_those_that_are) {
    EXPECT_EQ(parse_execution_mode("auto").value(), execution_mode::automatic);
    EXPECT_THAT(parse_execution_mode("fast").error().message(), testing::HasSubstr("auto, cpu or gpu"));
}

TEST_F(execution, the_gpu_is_asked_once_and_again_after_the_mode_was_changed) {
    one_gpu();
    EXPECT_TRUE(usable_gpu());
    EXPECT_TRUE(usable_gpu());
    EXPECT_EQ(probes_, 1);
    set_execution_mode(execution_mode::gpu);
    EXPECT_TRUE(usable_gpu());
    EXPECT_EQ(probes_, 2);
    no_gpu();
    EXPECT_EQ(usable_gpu().error().code(), errc::no_device);
}

// As long as a driver takes to start: whoever would bring the answer is not in the child.
TEST_F(execution, a_child_that_is_forked_while_its_parent_asks_for_a_gpu_asks_itself) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer ends a child with threads of its parent";
#endif
    std::promise<void> is_asking;
    std::atomic<bool> is_first{true};
    set_gpu_probe([&]() -> result<device_info> {
        if (is_first.exchange(false)) {
            is_asking.set_value();
            std::this_thread::sleep_for(std::chrono::milliseconds{300});
        }
        return fail(errc::no_device, "none");
    });
    std::jthread const asks{[] { EXPECT_FALSE(usable_gpu()); }};
    is_asking.get_future().get();
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(10);
        ::_exit(usable_gpu() ? 1 : 0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(execution, determinism_and_strictness_follow_the_same_order) {
    ::setenv("KILN_DETERMINISM", "1", 1);
    ::setenv("KILN_STRICT", "1", 1);
    reload_settings();
    EXPECT_TRUE(determinism_requested());
    EXPECT_TRUE(strict());
    set_determinism(false);
    set_strict(false);
    EXPECT_FALSE(determinism_requested());
    EXPECT_FALSE(strict());
    {
        deterministic_scope const scope;
        EXPECT_TRUE(determinism_requested());
    }
    EXPECT_FALSE(determinism_requested());
    ::unsetenv("KILN_DETERMINISM");
    ::unsetenv("KILN_STRICT");
    reload_settings();
}

}  // namespace kiln::runtime
