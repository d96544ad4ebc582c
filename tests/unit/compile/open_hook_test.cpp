// SPDX-License-Identifier: Apache-2.0
#include "compile/open_hook.hpp"

#include "compile/environment.hpp"

#include <cfenv>
#include <cstdint>
#include <gtest/gtest.h>
#include <semaphore>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::compile {

namespace {

class no_answers final : public header_answers {
public:
    std::FILE* open(std::string const&) override { return nullptr; }
    int stat(std::string const&, struct ::stat*) override { return -1; }
};

// As a program begins that was linked with -ffast-math.
void take_small_ones_for_zero() {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040U);
#elif defined(__aarch64__)
    std::uint64_t control = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | (std::uint64_t{1} << 24)));
#endif
}

}  // namespace

TEST(open_hook, what_is_kept_is_compiled_as_everybody_rounds) {
    std::fesetround(FE_UPWARD);
    {
        no_answers none;
        scoped_capture const active{none};
        EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    }
    int const after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(after, FE_UPWARD);
}

TEST(open_hook, a_thread_that_rounds_otherwise_or_takes_small_numbers_for_zero_does_not_compute_as_usual) {
    EXPECT_TRUE(computes_as_usual());
    for (int const rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        std::fesetround(rounding);
        bool const seen = computes_as_usual();
        std::fesetround(FE_TONEAREST);
        EXPECT_FALSE(seen) << rounding;
    }
#if defined(__x86_64__) || defined(__aarch64__)
    take_small_ones_for_zero();
    bool const before = computes_as_usual();
    bool within = false;
    {
        no_answers none;
        scoped_capture const active{none};
        within = computes_as_usual();
    }
    bool const after = computes_as_usual();
    std::fesetenv(FE_DFL_ENV);
    EXPECT_FALSE(before);
    EXPECT_TRUE(within) << "what is kept is for everybody";
    EXPECT_FALSE(after) << "the caller's own is given back";
    EXPECT_TRUE(computes_as_usual());
#endif
}

// What this process is, in the exit status of a child of it.
int in_child(auto ask) {
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(20);
        ::_exit(ask() ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
}

TEST(open_hook, a_child_of_fork_waits_for_no_compile_of_its_parent) {
    std::binary_semaphore compiling{0}, done{0};
    std::jthread const other{[&] {
        no_answers none;
        scoped_capture const active{none};
        compiling.release();
        done.acquire();
    }};
    compiling.acquire();
    EXPECT_FALSE(was_compiler_left_busy());
    auto const status = in_child([] {
        no_answers none;
        { scoped_capture const active{none}; }
        without_capture const alone;
        return was_compiler_left_busy();
    });
    done.release();
    EXPECT_EQ(status, 0);
}

// A function of the program that the compiler calls, and that does not come back. In a child: what it was in the middle of is there for ever.
TEST(open_hook, who_leaves_a_compile_for_good_leaves_nothing_in_force) {
    EXPECT_EQ(in_child([] {
                  static no_answers none;
                  static thread_capture* left = nullptr;
                  std::fesetround(FE_UPWARD);
                  left = new thread_capture{none};
                  bool const is_as_usual = std::fegetround() == FE_TONEAREST;
                  auto const* const aside = thread_turn::put_aside();
                  bool const is_the_programs = aside != nullptr && std::fegetround() == FE_UPWARD;
                  { scoped_capture const next{none}; }
                  { thread_capture const next{none}; }
                  std::jthread{[] { scoped_capture const other{none}; }}.join();
                  return is_as_usual && is_the_programs && thread_turn::put_aside() == nullptr;
              }),
              0);
}

TEST(open_hook, what_a_called_function_compiles_is_its_own) {
    no_answers none;
    std::fesetround(FE_UPWARD);
    bool is_as_usual = false;
    {
        thread_capture const outer{none};
        auto* const aside = thread_turn::put_aside();
        {
            scoped_capture const inner{none};
            EXPECT_EQ(std::fegetround(), FE_TONEAREST);
        }
        EXPECT_EQ(std::fegetround(), FE_UPWARD);
        thread_turn::take_up(aside);
        is_as_usual = std::fegetround() == FE_TONEAREST;
        EXPECT_TRUE(outer.has_seen_all());
        EXPECT_EQ(in_child([] { return !was_compiler_left_busy(); }), 0);
    }
    int const after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_TRUE(is_as_usual);
    EXPECT_EQ(after, FE_UPWARD);
    EXPECT_EQ(thread_turn::put_aside(), nullptr);
}

TEST(open_hook, a_child_of_who_compiles_goes_on_with_it) {
    int status = -1;
    {
        no_answers none;
        scoped_capture const active{none};
        status = in_child([] { return !was_compiler_left_busy(); });
    }
    EXPECT_EQ(status, 0);
    without_capture const alone;
    EXPECT_EQ(in_child([] { return !was_compiler_left_busy(); }), 0);
}

}  // namespace kiln::compile
