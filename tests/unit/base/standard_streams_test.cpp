// SPDX-License-Identifier: Apache-2.0
#include "base/standard_streams.hpp"

#include "base/files.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace kiln::base {

namespace {

constexpr int numbers[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};

void close_streams() {
    for (int const stream : numbers) ::close(stream);
}

bool is_empty(int fd) {
    struct ::stat about {};
    return ::fstat(fd, &about) == 0 && about.st_size == 0 && ::lseek(fd, 0, SEEK_CUR) == 0;
}

}  // namespace

TEST(standard_streams, hear_nothing_of_ours_at_any_moment) {
    auto const scratch = temporary_directory::make().value();
    auto const work = [&] {
        close_streams();
        std::atomic<bool> done{false}, heard{false};
        std::thread talker{[&] {
            while (!done)
                for (int const stream : numbers) {
                    char one;
                    // By their numbers: ThreadSanitizer takes use beside close() for a mistake, which here it is meant to be.
                    [[maybe_unused]] auto const count = ::syscall(SYS_read, stream, &one, 1);
                    if (::syscall(SYS_write, stream, "said to nobody", 14) >= 0) heard = true;
                }
        }};
        replace_file(scratch.path() / "read", as_bytes("read by us")).value();
        bool all_empty = true;
        for (int i = 0; i < 500; ++i) {
            auto const file = open_file(scratch.path() / std::to_string(i), O_RDWR | O_CREAT, 0600).value();
            file_descriptor const memory{memory_file("test", MFD_CLOEXEC)};
            all_empty = all_empty && is_empty(file.get()) && is_empty(memory.get());
            if (i % 10 == 0) close_streams();
            if (read_file(scratch.path() / "read").value()->size() != 10) ::_exit(3);
        }
        done = true;
        talker.join();
        ::_exit(!all_empty ? 1 : heard ? 2 : 0);
    };
    EXPECT_EXIT(work(), testing::ExitedWithCode(0), "");
}

TEST(standard_streams, are_as_good_as_closed) {
    auto const work = [] {
        close_streams();
        errno = ENOTTY;
        occupy_standard_streams();
        if (errno != ENOTTY) ::_exit(1);
        for (int const stream : numbers) {
            char one = 0;
            if (::write(stream, &one, 1) >= 0 || errno != EBADF) ::_exit(2);
            if (::read(stream, &one, 1) >= 0 || errno != EBADF) ::_exit(3);
            if (::fcntl(stream, F_GETFD) != FD_CLOEXEC) ::_exit(4);
            // Who is shut in by chroot() later finds no way out by it.
            if (::openat(stream, ".", O_RDONLY) >= 0 || errno != ENOTDIR) ::_exit(5);
        }
        ::_exit(0);
    };
    EXPECT_EXIT(work(), testing::ExitedWithCode(0), "");
}

TEST(standard_streams, that_are_there_stay_the_programs) {
    auto const work = [] {
        ::close(STDIN_FILENO);
        int const own = ::fcntl(STDERR_FILENO, F_GETFL);
        occupy_standard_streams();
        if (::fcntl(STDERR_FILENO, F_GETFL) != own) ::_exit(1);
        ::close(STDIN_FILENO);
        ::_exit(::open("/dev/null", O_RDONLY) == STDIN_FILENO ? 0 : 2);
    };
    EXPECT_EXIT(work(), testing::ExitedWithCode(0), "");
}

}  // namespace kiln::base
