// SPDX-License-Identifier: Apache-2.0
#include "compile/program_end.hpp"

#include "base/clock.hpp"

#include <atomic>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <semaphore>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::compile {

namespace {

constexpr int well = 7, too_early = 8;
constexpr double patience_ms = 10'000;

// A program of its own: whoever ends it waits, and nobody else.
int status_of(std::function<void()> const& program) {
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(60);
        program();
        std::_Exit(99);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

constinit std::atomic<bool> is_compiled{false};
void tell() { std::_Exit(is_compiled.load() ? well : too_early); }

// A compile in a thread of its own, which goes on until the program ends, and for a while. What it runs may go on in a child of it.
void compile_until(
    std::function<bool()> const& is_over, std::function<void()> const& meanwhile = [] {}) {
    std::binary_semaphore begun{0};
    std::thread{[&begun, is_over, meanwhile, one = std::make_shared<compile_in_program>()] {
        one->runs_here();
        begun.release();
        meanwhile();
        while (!is_over()) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
        is_compiled.store(true);
        one->done();
    }}.detach();
    begun.acquire();
}

class program_end : public ::testing::Test {
protected:
    void SetUp() override {
#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "ThreadSanitizer starts no thread in a child of fork()";
#endif
    }
};

}  // namespace

TEST_F(program_end, a_compile_is_waited_for_before_what_was_registered_earlier) {
    EXPECT_EQ(status_of([] {
                  std::atexit(tell);
                  compile_until(is_program_ending);
                  std::exit(0);
              }),
              well);
}

TEST_F(program_end, a_compile_that_ends_the_program_does_not_wait_for_itself) {
    base::stopwatch const watch;
    EXPECT_EQ(status_of([] {
                  std::atexit(tell);
                  compile_until([] { return false; }, [] { std::exit(0); });
                  for (;;) ::pause();
              }),
              too_early);
    EXPECT_LT(watch.ms(), patience_ms);
}

TEST_F(program_end, a_child_does_not_wait_for_its_parents_compiles) {
    base::stopwatch const watch;
    EXPECT_EQ(status_of([] {
                  compile_until(is_program_ending);
                  auto const status = status_of([] { std::exit(3); });
                  std::_Exit(status);
              }),
              3);
    EXPECT_LT(watch.ms(), patience_ms);
}

TEST_F(program_end, a_child_of_the_compiles_own_thread_goes_on_with_it_and_waits_for_the_next) {
    EXPECT_EQ(status_of([] {
                  std::atexit(tell);
                  auto one = std::make_unique<compile_in_program>();
                  one->runs_here();
                  auto const status = status_of([&] {
                      one->done();
                      compile_until(is_program_ending);
                      std::exit(0);
                  });
                  std::_Exit(status);
              }),
              well);
}

TEST_F(program_end, nothing_begins_when_it_has) {
    EXPECT_EQ(status_of([] {
                  EXPECT_FALSE(is_program_ending());
                  std::atexit([] { std::_Exit(is_program_ending() ? well : too_early); });
                  compile_in_program{}.done();
                  std::exit(0);
              }),
              well);
}

}  // namespace kiln::compile
