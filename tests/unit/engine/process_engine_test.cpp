// SPDX-License-Identifier: Apache-2.0
// How programs end that use the engine of their process.
#include "support/faulty_calls.hpp"
#include "support/pretended_compiler.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::test {

namespace {

class process_engine : public ::testing::Test {
protected:
    void SetUp() override {
#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "ThreadSanitizer ends a child as a failure whose threads have ended and were not joined: the "
                        "engine of a process "
                        "is never destroyed";
#endif
    }
    // A child with an engine of its own, and as waitpid gives it how it ended.
    template <class Program>
    int run(Program program) {
        std::fflush(nullptr);  // or it is written once more
        auto const child = ::fork();
        if (child == 0) {
            ::alarm(60);
            ::setenv("KILN_CACHE_DIR", (scratch_.path() / "cache").c_str(), 1);
            auto& e = engine::process();
            compile_by(e, event_log::process(), [](compile::job const& j) { return product_of(j, "image"); });
            program(e);
            ::_exit(99);
        }
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        return status;
    }
    static pending<obtained> ask(engine& e, unit const& u) {
        auto const t = target::parse("sm_90").value();
        return e.internals().requests->ask(order_of(u, t), priority::declared).answer;
    }

    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-process-engine").value();
};

TEST_F(process_engine, a_callback_may_end_the_program_where_something_was_compiled) {
    auto const status = run([](engine& e) {
        ask(e, unit_called("u")).then([](result<obtained> const&) { std::exit(7); });
        ::pause();
    });
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(process_engine, a_callback_may_end_the_program_where_it_was_found) {
    auto const status = run([](engine& e) {
        auto const u = unit_called("u");
        (void)get_sync(e, u);
        // Until one is not answered before anybody can be told.
        for (int n = 0; n < 100'000; ++n) {
            ask(e, u).then([here = std::this_thread::get_id()](result<obtained> const&) {
                if (std::this_thread::get_id() != here) std::exit(7);
            });
        }
        ::pause();
    });
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(process_engine, a_directory_that_hangs_does_not_keep_a_program_from_its_end) {
    auto const status = run([](engine& e) {
        (void)get_sync(e, unit_called("u"));
        if (!e.flush_sync()) ::_exit(98);
        auto& inside = *new std::promise<void>;
        auto& hangs = *new faulty_calls;
        hangs.hook = [&inside, here = std::this_thread::get_id()](call, char const* path, int) {
            static std::once_flag once;
            if (path == nullptr || std::this_thread::get_id() == here) return;
            std::call_once(once, [&] { inside.set_value(); });
            for (;;) ::pause();
        };
        (void)ask(e, unit_called("v"));
        inside.get_future().get();
        std::exit(5);
    });
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 5);
}

}  // namespace

}  // namespace kiln::test
