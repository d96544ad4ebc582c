// SPDX-License-Identifier: Apache-2.0
#include "cuda/file_content.hpp"

#include "base/digest.hpp"
#include "base/files.hpp"
#include "support/pretended_mounts.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace kiln::cuda {
namespace {

namespace fs = std::filesystem;

TEST(file_content, the_content_counts) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "file";
    ASSERT_TRUE(base::replace_file(file, base::as_bytes("one")));
    EXPECT_EQ(content_of(file).value(), base::sha256_of("one").hex());
    ASSERT_TRUE(base::replace_file(file, base::as_bytes("two")));
    EXPECT_EQ(content_of(file).value(), base::sha256_of("two").hex()) << "same size, another file";
}

// Clocks of file systems tick every few milliseconds: between two ticks a file can change and say that it did not. Here one whose
// clock stands still.
TEST(file_content, a_change_that_does_not_show_is_seen) {
    static ::timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    auto calls = base::real_system_calls();
    calls.statx = [](int dir, char const* path, int flags, unsigned mask, struct ::statx* about) {
        int const out = base::real_system_calls().statx(dir, path, flags, mask, about);
        about->stx_mtime = about->stx_ctime = {now.tv_sec, static_cast<std::uint32_t>(now.tv_nsec), 0};
        return out;
    };
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "file";
    ASSERT_TRUE(base::replace_file(file, base::as_bytes("one")));
    base::install_system_calls(&calls);
    EXPECT_EQ(content_of(file).value(), base::sha256_of("one").hex());
    std::ofstream{file, std::ios::in | std::ios::out} << "two";
    EXPECT_EQ(content_of(file).value(), base::sha256_of("two").hex());
    base::install_system_calls(nullptr);
}

// Images of file systems that were made apart can have the same numbers, sizes and times in them.
TEST(file_content, a_file_of_another_mount_is_another) {
    test::pretended_mounts const mounts;
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "file";
    ASSERT_TRUE(base::replace_file(file, base::as_bytes("one")));
    mounts.mount(1);
    EXPECT_EQ(content_of(file).value(), base::sha256_of("one").hex());
    mounts.write_unnoticed(file, "two");
    EXPECT_EQ(content_of(file).value(), base::sha256_of("one").hex()) << "nothing shows";
    mounts.mount(2);
    EXPECT_EQ(content_of(file).value(), base::sha256_of("two").hex());
}

// In a process that has hashed nothing yet; true is success.
bool in_a_new_process(std::function<bool()> const& body) {
    auto const child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    int status = -1;
    ::waitpid(child, &status, 0);
    return status == 0;
}

std::atomic<std::size_t> bytes_read{0};

std::size_t bytes_read_for(fs::path const& file) {
    auto calls = base::real_system_calls();
    calls.read = [](int fd, void* data, std::size_t size) {
        auto const got = base::real_system_calls().read(fd, data, size);
        if (got > 0) bytes_read += static_cast<std::size_t>(got);
        return got;
    };
    bytes_read = 0;
    base::install_system_calls(&calls);
    auto const content = content_of(file);
    base::install_system_calls(nullptr);
    return content ? bytes_read.load() : 0;
}

// This program: it has been what it is for more than two seconds, or the test says so.
class remembered_contents : public testing::Test {
protected:
    fs::path const program_ = fs::canonical("/proc/self/exe");
    base::temporary_directory const scratch_ = base::temporary_directory::make().value();
    fs::path const memory_ = scratch_.path() / "contents";
    std::size_t const size_ = fs::file_size(program_);

    void SetUp() override {
        if (fs::file_time_type::clock::now() - fs::last_write_time(program_) < std::chrono::seconds{3})
            GTEST_SKIP() << "this program was written a moment ago";
    }
    [[nodiscard]] bool reads_all(fs::path const& in, memory_access how = memory_access::read_write) const {
        return in_a_new_process([&] {
            remember_contents_in(in, how);
            return bytes_read_for(program_) >= size_;
        });
    }
};

TEST_F(remembered_contents, are_not_read_again) {
    EXPECT_TRUE(in_a_new_process([&] {
        auto const first = bytes_read_for(program_);
        return first >= size_ && bytes_read_for(program_) == 0;
    }));
}

TEST_F(remembered_contents, serve_the_next_process) {
    EXPECT_TRUE(reads_all(memory_));
    EXPECT_FALSE(reads_all(memory_)) << "a few bytes were enough";
    EXPECT_TRUE(in_a_new_process([&] {
        auto const hashed = content_of(program_).value();
        return in_a_new_process([&] {
            remember_contents_in(memory_, memory_access::read_only);
            return content_of(program_).value() == hashed;
        });
    }));
    EXPECT_TRUE(reads_all({})) << "and without a directory nothing is remembered";
}

TEST_F(remembered_contents, are_kept_as_soon_as_there_is_a_place_for_them) {
    auto const later = scratch_.path() / "cache" / "contents";
    EXPECT_TRUE(in_a_new_process([&] {
        remember_contents_in(later, memory_access::read_write);
        bool const hashed = content_of(program_).has_value();
        keep_contents();
        bool const made_none = !fs::exists(later.parent_path());
        fs::create_directories(later.parent_path());
        keep_contents();
        return hashed && made_none;
    }));
    EXPECT_FALSE(reads_all(later));
}

TEST_F(remembered_contents, are_nobodys_business_where_they_may_not_be_kept) {
    EXPECT_TRUE(in_a_new_process([&] {
        for (auto const& place : {fs::path{}, memory_}) {
            remember_contents_in(place, memory_access::read_only);
            if (!content_of(program_) || has_unkept_contents()) return false;
        }
        remember_contents_in(memory_, memory_access::read_write);
        bool const may_now = has_unkept_contents();
        keep_contents();
        return may_now && !has_unkept_contents();
    }));
}

TEST_F(remembered_contents, are_not_believed_where_others_can_write) {
    EXPECT_TRUE(reads_all(memory_));
    fs::permissions(memory_, fs::perms::others_write, fs::perm_options::add);
    EXPECT_TRUE(reads_all(memory_));
}

TEST_F(remembered_contents, with_one_digit_changed_are_not_believed) {
    EXPECT_TRUE(reads_all(memory_));
    for (auto const& file : fs::directory_iterator{memory_}) {
        std::fstream kept{file.path(), std::ios::in | std::ios::out};
        char const first = static_cast<char>(kept.peek());
        kept.seekp(0);
        kept.put(first == '0' ? '1' : '0');
    }
    EXPECT_TRUE(reads_all(memory_));
    EXPECT_FALSE(reads_all(memory_)) << "replaced";
}

TEST_F(remembered_contents, processes_that_start_at_once_hash_it_once) {
    constexpr int processes = 6;
    fs::create_directories(memory_.parent_path());
    int gate[2] = {-1, -1}, told[2] = {-1, -1};
    ASSERT_EQ(::pipe(gate), 0);
    ASSERT_EQ(::pipe(told), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) {
        children.push_back(::fork());
        if (children.back() != 0) continue;
        char go = 0;
        ::close(gate[1]);
        (void)!::read(gate[0], &go, 1);  // the end of the pipe: all at once
        remember_contents_in(memory_, memory_access::read_write);
        char const read_all = bytes_read_for(program_) >= fs::file_size(program_) ? 'y' : 'n';
        (void)!::write(told[1], &read_all, 1);
        ::_exit(0);
    }
    ::close(gate[1]);
    ::close(told[1]);
    std::string all(processes, ' ');
    for (auto& one : all) ASSERT_EQ(::read(told[0], &one, 1), 1);
    for (auto const child : children) ::waitpid(child, nullptr, 0);
    EXPECT_EQ(std::ranges::count(all, 'y'), 1) << all;
    for (int const end : {gate[0], told[0]}) ::close(end);
}

// A thread that looks while another forks must not leave the child a lock that nobody will open.
TEST(file_content, a_child_of_fork_can_ask) {
    std::atomic<bool> stop{false};
    std::thread busy{[&] {
        for (int i = 0; !stop; ++i) {
            auto const scratch = base::temporary_directory::make("kiln-content").value();
            base::replace_file(scratch.path() / "a", base::bytes(1 << 16, std::byte{1})).value();
            static_cast<void>(content_of(scratch.path() / "a"));
        }
    }};
    for (int i = 0; i < 100; ++i) {
        auto const child = ::fork();
        if (child == 0) {
            ::alarm(20);
            ::_exit(content_of("/proc/self/exe").has_value() ? 0 : 1);
        }
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0) << "fork " << i;
    }
    stop = true;
    busy.join();
}

TEST_F(remembered_contents, that_are_damaged_or_cannot_be_kept_cost_a_hash) {
    EXPECT_TRUE(reads_all(memory_));
    for (auto const& file : fs::directory_iterator{memory_}) std::ofstream{file.path()} << "nonsense";
    EXPECT_TRUE(reads_all(memory_));
    EXPECT_FALSE(reads_all(memory_)) << "replaced";
    EXPECT_TRUE(reads_all("/proc/nowhere/contents"));
    EXPECT_TRUE(reads_all(scratch_.path() / "other", memory_access::read_only));
    EXPECT_FALSE(fs::exists(scratch_.path() / "other"));
}

}  // namespace
}  // namespace kiln::cuda
