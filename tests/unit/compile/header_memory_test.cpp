// SPDX-License-Identifier: Apache-2.0
#include "compile/header_memory.hpp"

#include "base/digest.hpp"
#include "base/file_state.hpp"
#include "base/files.hpp"
#include "support/pretended_mounts.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::compile {
namespace {

namespace fs = std::filesystem;

class header_memory_test : public testing::Test {
protected:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-memory").value();
    header_memory memory_;

    [[nodiscard]] std::string path(std::string const& name) const { return scratch_.path() / name; }
    void write(std::string const& name, std::string_view text) const {
        base::make_directories(fs::path{path(name)}.parent_path()).value();
        base::replace_file(path(name), base::as_bytes(text)).value();
    }
    // Files whose last change is long ago by every clock there is: what a test has just written never is. The system's own are.
    static std::string old_file() { return "/proc/self/exe"; }
    [[nodiscard]] static std::string digest_of(std::string_view text) { return base::sha256_of(text).hex(); }
};

TEST_F(header_memory_test, says_what_is_there_and_what_is_not) {
    write("a.h", "one");
    EXPECT_EQ(memory_.content_at(path("a.h")).value(), digest_of("one"));
    EXPECT_EQ(memory_.content_at(path("b.h")).value(), "");
    EXPECT_EQ(memory_.content_at(path("a.h/b.h")).value(), "");
    EXPECT_EQ(memory_.content_at(scratch_.path().native()).value(), "") << "a directory is no header";
}

TEST_F(header_memory_test, what_changed_just_now_is_read_every_time) {
    write("a.h", "one");
    struct ::stat before {};
    ASSERT_EQ(::stat(path("a.h").c_str(), &before), 0);
    EXPECT_EQ(memory_.content_at(path("a.h")).value(), digest_of("one"));
    // In place, of the same length, with the same time: nothing shows but the text.
    auto const fd = base::open_file(path("a.h"), O_WRONLY).value();
    base::write_all(fd.get(), base::as_bytes("two")).value();
    ::timespec const times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::futimens(fd.get(), times), 0);
    EXPECT_EQ(memory_.content_at(path("a.h")).value(), digest_of("two"));
    EXPECT_EQ(memory_.reads(), 2u);
}

// A store into a mapping leaves no sign where nothing is ever written back.
TEST_F(header_memory_test, what_lies_in_memory_is_read_every_time) {
    auto const file = fmt::format("/dev/shm/kiln-memory-{}.h", ::getpid());
    if (!base::replace_file(file, base::as_bytes("one"))) GTEST_SKIP() << "there is no /dev/shm";
    auto const usual = base::content_settles_after_ns.exchange(0);
    EXPECT_EQ(memory_.content_at(file).value(), digest_of("one"));
    EXPECT_EQ(memory_.content_at(file).value(), digest_of("one"));
    EXPECT_EQ(memory_.reads(), 2u);
    base::content_settles_after_ns = usual;
    fs::remove(file);
}

// Images of file systems that were made apart can have the same numbers, sizes and times in them.
TEST_F(header_memory_test, a_header_of_another_mount_is_another) {
    write("a.h", "one");
    if (base::is_kept_in_memory(path("a.h").c_str())) GTEST_SKIP() << "the temporary directory is in memory";
    test::pretended_mounts const mounts;
    mounts.mount(1);
    EXPECT_EQ(memory_.content_at(path("a.h")).value(), digest_of("one"));
    mounts.write_unnoticed(path("a.h"), "two");
    EXPECT_EQ(memory_.content_at(path("a.h")).value(), digest_of("one")) << "nothing shows";
    memory_.remember_in(path("kept"), header_memory::access::read_write);
    memory_.keep();
    header_memory next;
    next.remember_in(path("kept"), header_memory::access::read_write);
    EXPECT_EQ(next.content_at(path("a.h")).value(), digest_of("one")) << "nothing shows";
    mounts.mount(2);
    EXPECT_EQ(memory_.content_at(path("a.h")).value(), digest_of("two"));
    EXPECT_EQ(next.content_at(path("a.h")).value(), digest_of("two"));
}

TEST_F(header_memory_test, what_is_settled_is_read_once_also_by_the_next_process) {
    auto const file = fs::canonical(old_file()).native();
    base::file_look about;
    ASSERT_EQ(base::look_at(file.c_str(), about), 0);
    if (!base::is_content_settled(about.state, file.c_str())) GTEST_SKIP() << "this program was built just now";
    memory_.remember_in(path("kept/headers"), header_memory::access::read_write);
    auto const content = memory_.content_at(file).value();
    EXPECT_EQ(memory_.content_at(file).value(), content);
    EXPECT_EQ(memory_.reads(), 1u);
    memory_.keep();

    header_memory next;
    next.remember_in(path("kept/headers"), header_memory::access::read_write);
    EXPECT_EQ(next.content_at(file).value(), content);
    EXPECT_EQ(next.reads(), 0u);

    // Damaged, or somebody else's to write: not believed.
    auto data = **base::read_file(path("kept/headers"));
    data[data.size() / 2] ^= std::byte{1};
    base::replace_file(path("kept/damaged"), data).value();
    header_memory damaged;
    damaged.remember_in(path("kept/damaged"), header_memory::access::read_only);
    EXPECT_EQ(damaged.content_at(file).value(), content);
    EXPECT_EQ(damaged.reads(), 1u);
    fs::permissions(path("kept/headers"), fs::perms::others_write, fs::perm_options::add);
    header_memory open_to_all;
    open_to_all.remember_in(path("kept/headers"), header_memory::access::read_only);
    EXPECT_EQ(open_to_all.content_at(file).value(), content);
    EXPECT_EQ(open_to_all.reads(), 1u);
}

TEST_F(header_memory_test, nothing_is_kept_where_nothing_may_be_written) {
    memory_.remember_in(path("kept/headers"), header_memory::access::read_only);
    EXPECT_TRUE(memory_.content_at(fs::canonical(old_file()).native()));
    memory_.keep();
    EXPECT_FALSE(fs::exists(path("kept")));
}

TEST_F(header_memory_test, of_a_toolkit_the_first_directory_that_has_it_answers) {
    write("second/a.h", "two");
    std::vector<std::string> const directories{path("first"), path("second")};
    auto const ask = [&] { return *header_memory::question{memory_}.in_toolkit(directories, "a.h").value(); };
    EXPECT_EQ(ask().path, path("second/a.h"));
    EXPECT_EQ(ask().content, digest_of("two"));
    write("first/a.h", "one");
    EXPECT_EQ(ask().path, path("first/a.h"));
    write("first/a.h", "another");
    EXPECT_EQ(ask().content, digest_of("another"));
    fs::remove_all(path("first"));
    EXPECT_EQ(ask().content, digest_of("two"));
    fs::remove_all(path("second"));
    EXPECT_EQ(ask().path, "");
}

// Before, for a second after it was looked at nobody looked again.
TEST_F(header_memory_test, what_a_header_of_a_toolkit_says_is_asked_every_time) {
    write("kit/a.h", "one");
    std::vector<std::string> const directories{path("kit")};
    auto const ask = [&] { return header_memory::question{memory_}.in_toolkit(directories, "a.h").value(); };
    // Until the directory is old enough that the answer is kept.
    auto const end = base::clock::now() + std::chrono::seconds{10};
    while (ask() != ask() && base::clock::now() < end) std::this_thread::yield();
    ASSERT_EQ(ask(), ask());
    std::ofstream{path("kit/a.h")} << "two";  // in place: the directory stays as it is
    EXPECT_EQ(ask()->content, digest_of("two"));
}

// Who knows that nobody edits a toolkit in place may say so; what comes and goes in its directories is seen all the same.
TEST_F(header_memory_test, a_toolkit_is_trusted_for_as_long_as_was_said) {
    write("kit/a.h", "one");
    std::vector<std::string> const directories{path("kit")};
    auto const ask = [&] { return header_memory::question{memory_}.in_toolkit(directories, "a.h").value(); };
    auto const end = base::clock::now() + std::chrono::seconds{10};
    while (ask() != ask() && base::clock::now() < end) std::this_thread::yield();
    memory_.trust_toolkits_for(std::chrono::hours{1});
    std::ofstream{path("kit/a.h")} << "two";
    EXPECT_EQ(ask()->content, digest_of("one"));
    memory_.trust_toolkits_for({});
    EXPECT_EQ(ask()->content, digest_of("two"));
    memory_.trust_toolkits_for(std::chrono::hours{1});
    fs::remove(path("kit/a.h"));
    EXPECT_EQ(ask()->path, "");
}

// The directory of a link does not change when there is something where it leads.
TEST_F(header_memory_test, a_link_of_a_toolkit_that_led_nowhere_is_looked_at_again) {
    write("kit/other.h", "other");
    fs::create_symlink(path("elsewhere.h"), path("kit/a.h"));
    std::vector<std::string> const directories{path("kit")};
    auto const ask = [&](char const* name) {
        return header_memory::question{memory_}.in_toolkit(directories, name).value();
    };
    auto const end = base::clock::now() + std::chrono::seconds{10};
    while (ask("other.h") != ask("other.h") && base::clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(ask("a.h")->path, "");
    EXPECT_EQ(ask("a.h")->path, "");
    write("elsewhere.h", "there");
    EXPECT_EQ(ask("a.h")->content, digest_of("there"));
}

// Directories and files of the system, which nobody changes while this runs.
TEST_F(header_memory_test, a_settled_toolkit_is_looked_at_by_directory) {
    std::vector<std::string> const directories{"/usr/include"};
    if (!fs::exists("/usr/include/stdio.h")) GTEST_SKIP() << "no headers are installed";
    header_memory::question first{memory_};
    auto const one = first.in_toolkit(directories, "stdio.h").value();
    header_memory::question second{memory_};
    EXPECT_EQ(second.in_toolkit(directories, "stdio.h").value().get(), one.get()) << "the answer itself, kept";
    EXPECT_EQ(memory_.reads(), 1u);
}

// A static of a function would be one that the child waits for, for ever: the thread that was making it is not there.
TEST(header_memory_of_the_process, may_be_asked_for_first_while_another_thread_forks) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer does not support threads in the child of a process with threads";
#endif
    auto const waited_for = [](::pid_t child) {
        int status = -1;
        return ::waitpid(child, &status, 0) == child && status == 0;
    };
    for (int round = 0; round < 300; ++round) {
        auto const parent = ::fork();
        if (parent == 0) {
            std::atomic<bool> begins{false};
            std::thread asks{[&, round] {
                while (!begins.load()) continue;
                for (std::atomic<int> n{0}; n < 10 * round; ++n) continue;
                (void)header_memory::process().reads();
            }};
            begins = true;
            auto const child = ::fork();
            if (child == 0) {
                ::alarm(10);
                (void)header_memory::process().reads();
                ::_exit(0);
            }
            bool const has_ended = waited_for(child);
            asks.join();
            ::_exit(has_ended ? 0 : 1);
        }
        ASSERT_TRUE(waited_for(parent)) << "round " << round;
    }
}

}  // namespace
}  // namespace kiln::compile
