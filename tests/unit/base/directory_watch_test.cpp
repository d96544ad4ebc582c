// SPDX-License-Identifier: Apache-2.0
#include "base/directory_watch.hpp"

#include "base/file_systems.hpp"
#include "base/files.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::base {
namespace {

namespace fs = std::filesystem;

class directory_watch_test : public testing::Test {
protected:
    temporary_directory scratch_ = temporary_directory::make("kiln-watch").value();
    directory_watch watch_;

    [[nodiscard]] std::string path(std::string const& name) const { return scratch_.path() / name; }
    [[nodiscard]] static file_state state_of(std::string const& path) {
        file_look about;
        EXPECT_EQ(look_at(path.c_str(), about), 0) << path;
        return about.state;
    }
    [[nodiscard]] bool add(std::string const& at) { return watch_.add(at, state_of(at), watch_.period()); }

    void SetUp() override {
        fs::create_directory(path("kit"));
        std::ofstream{path("kit/a.h")} << "one";
        watch_.take_place_in(path("watchers"));
        if (watch_.period() == 0 || !add(path("kit"))) GTEST_SKIP() << "nothing can be watched in " << scratch_.path();
    }
};

TEST_F(directory_watch_test, a_period_lasts_until_something_happens) {
    auto const period = watch_.period();
    file_look about;
    ASSERT_EQ(look_at(path("kit/a.h").c_str(), about), 0);
    EXPECT_EQ(watch_.period(), period) << "a look is nothing that happens";
    std::ofstream{path("kit/a.h"), std::ios::app} << "two";
    EXPECT_NE(watch_.period(), period);
    EXPECT_EQ(watch_.period(), watch_.period());
    EXPECT_FALSE(watch_.add(path("kit"), state_of(path("kit")), period)) << "that one is over";
}

TEST_F(directory_watch_test, whoever_opens_a_file_may_store_through_a_mapping) {
    auto const period = watch_.period();
    auto const file = open_file(path("kit/a.h"), O_RDWR).value();
    EXPECT_NE(watch_.period(), period);
}

TEST_F(directory_watch_test, whoever_has_it_open_from_before_is_seen_writing) {
    auto const file = open_file(path("kit/a.h"), O_RDWR).value();
    auto const period = watch_.period();
    ASSERT_TRUE(add(path("kit")));
    EXPECT_EQ(watch_.period(), period);
    ASSERT_EQ(::pwrite(file.get(), "two", 3, 0), 3);
    EXPECT_NE(watch_.period(), period);
}

TEST_F(directory_watch_test, a_file_is_watched_under_all_its_names) {
    fs::create_hard_link(path("kit/a.h"), path("elsewhere.h"));
    ASSERT_TRUE(add(path("kit/a.h")));
    auto const period = watch_.period();
    std::ofstream{path("elsewhere.h"), std::ios::app} << "two";
    EXPECT_NE(watch_.period(), period);
}

TEST_F(directory_watch_test, what_took_its_place_is_watched_anew) {
    fs::create_directory(path("other"));
    std::ofstream{path("other/b.h")} << "one";
    EXPECT_FALSE(watch_.add(path("other"), state_of(path("kit")), watch_.period())) << "it is not what was seen";
    fs::rename(path("kit"), path("gone"));
    fs::rename(path("other"), path("kit"));
    ASSERT_TRUE(add(path("kit")));
    auto const period = watch_.period();
    std::ofstream{path("kit/b.h"), std::ios::app} << "two";
    EXPECT_NE(watch_.period(), period);
}

TEST_F(directory_watch_test, what_another_machine_or_the_kernel_may_change_is_not_watched) {
    EXPECT_FALSE(add("/proc"));
    EXPECT_FALSE(add("/sys"));
}

TEST_F(directory_watch_test, without_a_place_nobody_watches) {
    directory_watch other;
    EXPECT_EQ(other.period(), 0u);
    other.take_place_in(path("nowhere/watchers"));
    EXPECT_EQ(other.period(), 0u);
    EXPECT_FALSE(other.add(path("kit"), state_of(path("kit")), 0));
}

// Programs close what is not theirs, and the number is another file's.
TEST_F(directory_watch_test, its_descriptor_may_be_closed_by_somebody) {
    auto const period = watch_.period();
    std::string events;
    for (auto const& entry : fs::directory_iterator{"/proc/self/fd"}) {
        std::error_code gone;
        if (fs::read_symlink(entry.path(), gone) == "anon_inode:inotify") events = entry.path().filename();
    }
    ASSERT_FALSE(events.empty());
    int const number = std::stoi(events);
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    file_descriptor const in{pipe[0]}, out{pipe[1]};
    ASSERT_EQ(::dup2(in.get(), number), number);
    ASSERT_EQ(::write(out.get(), "mine", 4), 4);
    EXPECT_NE(watch_.period(), period);
    char text[4];
    EXPECT_EQ(::read(number, text, 4), 4) << "what the program wrote is the program's";
    ::close(number);
    ASSERT_TRUE(add(path("kit")));
    auto const next = watch_.period();
    std::ofstream{path("kit/a.h"), std::ios::app} << "two";
    EXPECT_NE(watch_.period(), next);
}

TEST_F(directory_watch_test, a_child_leaves_its_parents_events_alone_and_has_its_own) {
    auto const period = watch_.period();
    std::ofstream{path("kit/a.h"), std::ios::app} << "two";
    auto const child = ::fork();
    if (child == 0) {
        auto const mine = watch_.period();
        bool const is_new = mine != 0 && mine != period;
        bool const quiet = add(path("kit")) && watch_.period() == mine;
        std::ofstream{path("kit/a.h"), std::ios::app} << "three";
        ::_exit(is_new && quiet && watch_.period() != mine ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_NE(watch_.period(), period);
}

// So many that the user's other programs have theirs.
TEST_F(directory_watch_test, no_more_than_eight_processes_watch) {
    std::vector<::pid_t> children;
    int told[2];
    ASSERT_EQ(::pipe2(told, O_CLOEXEC), 0);
    file_descriptor const in{told[0]};
    int hold[2];
    ASSERT_EQ(::pipe2(hold, O_CLOEXEC), 0);
    file_descriptor const held{hold[0]};
    for (int i = 0; i < 12; ++i) {
        children.push_back(::fork());
        if (children.back() != 0) continue;
        ::close(hold[1]);
        char const watches = watch_.period() != 0 ? 'y' : 'n';
        char end = 0;
        static_cast<void>(::write(told[1], &watches, 1));
        static_cast<void>(::read(hold[0], &end, 1));
        ::_exit(0);
    }
    ::close(told[1]);
    int watching = 1;  // this one
    for (int i = 0; i < 12; ++i) {
        char watches = 0;
        ASSERT_EQ(::read(in.get(), &watches, 1), 1);
        watching += watches == 'y' ? 1 : 0;
    }
    ::close(hold[1]);
    for (auto const child : children) ::waitpid(child, nullptr, 0);
    EXPECT_EQ(watching, 8);
}

}  // namespace
}  // namespace kiln::base
