// SPDX-License-Identifier: Apache-2.0
#include "audit/raised_rights.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>

namespace kiln::audit {
namespace {

class raised_rights : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "kiln-rights-XXXXXX").native();
        folder_ = ::mkdtemp(pattern.data());
        file_ = folder_ + "/program";
        std::ofstream{file_} << "x";
        ::chmod(folder_.c_str(), 0755);
        ::chmod(file_.c_str(), 0755);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    // As somebody who is not root: what a file gives is nothing to root.
    [[nodiscard]] bool raises_for_others() const {
        auto const child = ::fork();
        if (child == 0)
            ::_exit(::setgid(65534) != 0 || ::setuid(65534) != 0 ? 2 : raises_rights(file_.c_str()) ? 1 : 0);
        int status = 0;
        ::waitpid(child, &status, 0);
        EXPECT_NE(WEXITSTATUS(status), 2);
        return WEXITSTATUS(status) == 1;
    }
    // Revision 2 of vfs_cap_data.
    [[nodiscard]] bool give(unsigned char effective, unsigned char permitted, unsigned char inheritable) const {
        unsigned char const all[20] = {effective, 0, 0, 2, 0, permitted, 0, 0, 0, inheritable};
        return ::setxattr(file_.c_str(), "security.capability", all, sizeof all, 0) == 0;
    }

    std::string folder_, file_;
};

TEST_F(raised_rights, of_a_plain_file_are_none) {
    EXPECT_FALSE(raises_rights(file_.c_str()));
    EXPECT_FALSE(raises_rights(nullptr));
    EXPECT_FALSE(raises_rights((folder_ + "/nothing").c_str()));
}

TEST_F(raised_rights, by_mode_and_by_capabilities) {
    if (::geteuid() != 0 || !give(1, 0x20, 0)) GTEST_SKIP() << "only root gives a file capabilities";
    EXPECT_TRUE(raises_for_others());
    EXPECT_FALSE(raises_rights(file_.c_str()));  // root has them
    ASSERT_TRUE(give(0, 0x20, 0));
    EXPECT_TRUE(raises_for_others());
    ASSERT_TRUE(give(0, 0, 0x20));
    EXPECT_FALSE(raises_for_others());  // only for who has it already
    ::chmod(file_.c_str(), 04755);
    EXPECT_TRUE(raises_for_others());
}

}  // namespace
}  // namespace kiln::audit
