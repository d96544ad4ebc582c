// SPDX-License-Identifier: Apache-2.0
#include "compile/viewpoint.hpp"

#include "base/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::compile {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class viewpoint_test : public testing::Test {
protected:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-view").value();

    [[nodiscard]] std::string path(std::string const& name) const { return scratch_.path() / name; }
    [[nodiscard]] std::string link(std::string const& name, std::string const& to) const {
        fs::create_symlink(to, path(name));
        return path(name);
    }
    static bool is_own(std::string const& name) { return is_ones_own(name.c_str()); }
};

TEST_F(viewpoint_test, ways_through_what_each_process_has_are_known_by_where_they_lead) {
    EXPECT_TRUE(is_own("/proc/self/cwd"));
    EXPECT_TRUE(is_own("//proc/self/cwd/../x.h"));
    EXPECT_TRUE(is_own("/proc/thread-self/root/usr"));
    EXPECT_TRUE(is_own(link("own", "/proc/self/cwd")));
    EXPECT_TRUE(is_own(link("twice", "own/below")));
    EXPECT_TRUE(is_own(path("twice/not/there.h")));
    EXPECT_TRUE(is_own(link("closed", "/proc/self/fd/99999")));
    EXPECT_TRUE(is_own("/proc/self/loginuid"));
    EXPECT_TRUE(is_own("/proc/mounts"));
    int const fd = ::open(scratch_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT_TRUE(is_own(fmt::format("/dev/fd/{}", fd)));
    ::close(fd);
}

TEST_F(viewpoint_test, all_other_ways_are_everybodys) {
    base::make_directories(path("there")).value();
    EXPECT_FALSE(is_own(path("there")));
    EXPECT_FALSE(is_own(path("not/there")));
    EXPECT_FALSE(is_own(link("link", path("there"))));
    EXPECT_FALSE(is_own(link("circle", "circle")));
    EXPECT_FALSE(is_own("."));
    EXPECT_FALSE(is_own("/proc/sys/kernel/pid_max"));
    EXPECT_TRUE(is_ones_own(fmt::format("/proc/{}/cwd", ::getpid()).c_str(), by_number::too));
    EXPECT_FALSE(is_ones_own(fmt::format("/proc/{}/cwd", ::getppid()).c_str(), by_number::too));
    // By its number it is the same for whoever asks.
    EXPECT_FALSE(is_own(fmt::format("/proc/{}/root/usr", ::getpid())));
    EXPECT_FALSE(is_own(link("by_number", fmt::format("/proc/{}/cwd", ::getpid()))));
}

TEST_F(viewpoint_test, a_directory_has_a_name_for_others) {
    auto const cwd = fs::current_path().native();
    EXPECT_EQ(name_for_others("").value(), "");
    EXPECT_EQ(name_for_others("/usr/../usr").value(), "/usr/../usr") << "as it is";
    EXPECT_EQ(name_for_others("inc").value(), cwd + "/inc");
    EXPECT_EQ(name_for_others(link("own", "/proc/self/cwd")).value(), cwd);
    // Letters of the kernel's links say where it is for who asks, which may be another place here.
    auto const by_number = fmt::format("/proc/{}/root", ::getppid());
    EXPECT_EQ(name_for_others(by_number).value(), by_number);
    EXPECT_EQ(name_for_others(fmt::format("/proc/{}/cwd", ::getpid())).value(), cwd) << "it may go elsewhere";
    EXPECT_FALSE(name_for_others("/proc/self/cwd/not-there"));
}

// 0: right; 77: no mounts to be had here.
int in_a_directory_that_was_mounted_over(std::string const& directory) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
    if (::chdir(directory.c_str()) != 0) return 1;
    auto const before = viewpoint::of_this_thread();
    if (!name_for_others("inc")) return 2;
    if (::mount(directory.c_str(), directory.c_str(), nullptr, MS_BIND, nullptr) != 0) return 77;
    auto const refused = name_for_others("inc");
    if (refused || refused.error().message().find("mounted over") == std::string::npos) return 3;
    if (::chdir(directory.c_str()) != 0 || !name_for_others("inc")) return 4;
    return viewpoint::of_this_thread() == before ? 5 : 0;
}

TEST_F(viewpoint_test, a_working_directory_that_was_mounted_over_has_no_name) {
    auto const child = ::fork();
    if (child == 0) ::_exit(in_a_directory_that_was_mounted_over(scratch_.path().native()));
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mounts to be had here";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "see in_a_directory_that_was_mounted_over()";
}

}  // namespace
}  // namespace kiln::compile
