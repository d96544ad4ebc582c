// SPDX-License-Identifier: Apache-2.0
// Programs that end while threads of Kiln are at work with libraries that end with the program, too.
#include "compile/program_end.hpp"
#include "store/maintenance.hpp"
#include "store/signing.hpp"
#include "support/told_redis.hpp"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <semaphore>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::test {

namespace {

using std::chrono::milliseconds;

// Has nothing, and takes its time to keep what it is sent: more than all of it fit into the end of a program.
std::string slow_to_keep(told_redis::words const& asked) {
    if (asked[0] != "SET") return to_all(asked, nothing);
    std::this_thread::sleep_for(milliseconds{10});
    return "+OK\r\n";
}

struct parting {
    std::string engine, with;
};

class ends_while_it_signs : public ::testing::TestWithParam<parting> {
protected:
    void SetUp() override {
        auto const key = store::private_key::generate().value();
        key.save(file("key")).value();
        base::replace_file(file("pub"), base::as_bytes(key.public_half().pem())).value();
    }
    [[nodiscard]] std::string file(std::string const& name) const { return scratch_.path() / name; }
    // As waitpid gives it.
    int run(told_redis const& remote, int nth) {
        std::vector<std::string> words{GetParam().engine};
        if (!GetParam().with.empty()) words.push_back(GetParam().with);
        actor program{words,
                      {"KILN_REMOTE=" + remote.url() + " lease=none sign=" + file("key") + " keys=" + file("pub"),
                       "KILN_CACHE_DIR=" + file("cache" + std::to_string(nth))},
                      KILN_TEST_BIN_DIR "/kiln-test-parting"};
        EXPECT_EQ(program.line(), "0 wrong");
        EXPECT_TRUE(remote.wait_until_asked("SET"));
        program.go();
        return program.wait();
    }

    [[nodiscard]] std::size_t kept(int nth) const {
        return store::maintenance{file("cache" + std::to_string(nth))}.count().value().entries;
    }

    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-exit").value();
};

TEST_P(ends_while_it_signs, R15_as_programs_do) {
    for (int n = 0; n < 3; ++n) {
        told_redis const server{slow_to_keep};
        EXPECT_EQ(run(server, n), 0) << "ended by a signal, if it is below 256";
        EXPECT_EQ(kept(n), 40u) << "on disk is what it made, also by a child";
    }
}

enum class lasts { a_moment, for_ever };

// Begins a compile on another thread, for which `registered` is what the compiler wants done at exit(), and goes on when that is registered.
template <class Compile>
void begin_a_compile(char const* library, void (*registered)(), Compile compile) {
    ::alarm(60);
    void* const opened = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    auto* const symbol = opened == nullptr ? nullptr : ::dlsym(opened, "register_late");
    if (symbol == nullptr) std::_Exit(2);
    static std::binary_semaphore begun{0};  // outlives this: the thread may still be in release()
    std::thread{[=] {
        compile::compile_in_program one;
        one.runs_here();
        compile::keep_exit_functions(opened);
        reinterpret_cast<void (*)(void (*)())>(symbol)(registered);
        begun.release();
        compile(one);
    }}.detach();
    begun.acquire();
}

// In a child, of which only the status is seen.
[[noreturn]] void end_in_a_compile(char const* library, lasts how_long) {
    static constinit std::atomic<bool> is_compiled{false};
    begin_a_compile(
        library, [] { std::_Exit(is_compiled.load() ? 0 : 1); },
        [=](compile::compile_in_program& one) {
            while (!compile::is_program_ending()) std::this_thread::yield();
            while (how_long == lasts::for_ever) ::pause();
            is_compiled.store(true);
            one.done();
        });
    std::exit(3);
}

// A child of the one that compiles ends; the status is its.
[[noreturn]] void end_a_child_of_a_compile(char const* library) {
    begin_a_compile(
        library, [] { std::_Exit(1); },
        [](compile::compile_in_program&) {
            for (;;) ::pause();
        });
    auto const child = ::fork();
    if (child == 0) std::exit(3);
    int status = -1;
    (void)::waitpid(child, &status, 0);
    std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
}

class ends_in_a_compile : public ::testing::Test {
protected:
    void SetUp() override {
#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "ThreadSanitizer starts no thread in a child of fork()";
#endif
        if (!std::filesystem::exists(library)) GTEST_SKIP() << "built with sanitizers: no library to load";
    }

    static int status_of(lasts how_long) {
        return status_of([=] { end_in_a_compile(library, how_long); });
    }
    template <class Program>
    static int status_of(Program const& program) {
        auto const child = ::fork();
        if (child == 0) program();
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

    static constexpr char const* library = KILN_TEST_BIN_DIR "/kiln-test-registers_late.so";
};

TEST_F(ends_in_a_compile, what_the_compiler_registers_meanwhile_is_done_afterwards) {
    EXPECT_EQ(status_of(lasts::a_moment), 0) << "1: too early";
}

TEST_F(ends_in_a_compile, what_the_compiler_registers_is_left_undone_where_it_takes_too_long) {
    EXPECT_EQ(status_of(lasts::for_ever), 3) << "1: taken away from a compile that goes on";
}

TEST_F(ends_in_a_compile, what_the_compiler_has_registered_is_left_undone_in_a_child) {
    EXPECT_EQ(status_of([] { end_a_child_of_a_compile(library); }), 3)
        << "1: with the locks that its parent's compile held";
}

INSTANTIATE_TEST_SUITE_P(all, ends_while_it_signs,
                         ::testing::Values(parting{"process", ""}, parting{"process", "first"},
                                           parting{"process", "later"}, parting{"static", ""},
                                           parting{"static", "first"}, parting{"late", ""}, parting{"late", "first"},
                                           parting{"process", "asks"}, parting{"process", "forks"}),
                         [](auto const& of) {
                             auto const& p = of.param;
                             bool const is_openssls = p.with == "first" || p.with == "later";
                             return p.engine + (p.with.empty() ? "" : (is_openssls ? "_openssl_" : "_") + p.with);
                         });

}  // namespace

}  // namespace kiln::test
