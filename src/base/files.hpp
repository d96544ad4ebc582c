// SPDX-License-Identifier: Apache-2.0
//
// The few file operations Kiln uses, each through `sys`, a table of system calls that tests replace to
// inject faults. All descriptors are close-on-exec; EINTR and short reads and writes are handled here and nowhere else.
#pragma once

#include "base/bytes.hpp"
#include "base/check.hpp"

#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <sys/statfs.h>

namespace kiln::base {

// The system calls Kiln's file code makes. Functions have the POSIX meaning: -1 and errno on failure.
struct system_calls {
    int (*open)(char const* path, int flags, unsigned mode);
    long (*read)(int fd, void* data, std::size_t size);
    long (*write)(int fd, void const* data, std::size_t size);
    int (*close)(int fd);
    int (*rename)(char const* from, char const* to);
    int (*unlink)(char const* path);
    int (*fstat)(int fd, struct ::stat* out);
    int (*lstat)(char const* path, struct ::stat* out);
    int (*mkdir)(char const* path, unsigned mode);
    int (*fsync)(int fd);
    int (*flock)(int fd, int operation);
    int (*utimensat)(int dir, char const* path, struct ::timespec const times[2], int flags);
    long (*pread)(int fd, void* data, std::size_t size, long offset);
    long (*pwrite)(int fd, void const* data, std::size_t size, long offset);
    int (*linkat)(int from_dir, char const* from, int to_dir, char const* to, int flags);
    // rename(2) that fails with EEXIST instead of replacing; EINVAL where the file system cannot.
    int (*rename_new)(char const* from, char const* to);
    long (*getdents)(int fd, void* data, std::size_t size);
    int (*fstatfs)(int fd, struct ::statfs* out);
    int (*statx)(int dir, char const* path, int flags, unsigned mask, struct ::statx* out);
};

// The real calls unless a test installed others.
[[nodiscard]] system_calls const& sys() noexcept;
// For tests: install before any thread uses files; nullptr restores the real calls.
void install_system_calls(system_calls const* calls) noexcept;
[[nodiscard]] system_calls const& real_system_calls() noexcept;

class file_descriptor {
public:
    file_descriptor() = default;
    explicit file_descriptor(int fd) noexcept : fd_{fd} {}
    file_descriptor(file_descriptor&& other) noexcept : fd_{other.release()} {}
    file_descriptor& operator=(file_descriptor&& other) noexcept;
    ~file_descriptor() { reset(); }

    [[nodiscard]] int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    int release() noexcept { return std::exchange(fd_, -1); }
    void reset() noexcept;
    // Closes and reports what close(2) said; the destructor cannot.
    [[nodiscard]] result<void> close();

private:
    int fd_ = -1;
};

// O_CLOEXEC is always added.
[[nodiscard]] result<file_descriptor> open_file(std::filesystem::path const& path, int flags, unsigned mode = 0600);
[[nodiscard]] result<void> write_all(int fd, byte_span data);
// Reads to the end of the file; errc::corrupt if there are more than `most` bytes.
[[nodiscard]] result<bytes> read_all(int fd, std::size_t most);

// nullopt: there is no such file. Never blocks on FIFOs or devices: those are errc::invalid_argument.
[[nodiscard]] result<std::optional<bytes>> read_file(std::filesystem::path const& path,
                                                     std::size_t most = std::size_t{1} << 30);

enum class durability { none, synced };

// Writes a randomly named temporary beside `path`, then renames it over: readers see the old file, the
// new file, or none, never a part. The temporary is gone afterwards, whatever happened. Only regular files are replaced:
// a link is followed, and a device, a FIFO or a directory is left as it is (errc::invalid_argument).
[[nodiscard]] result<void> replace_file(std::filesystem::path const& path, byte_span data, unsigned mode = 0600,
                                        durability how = durability::none);

// What a person named as the output of a command. A stream (FIFO, device, /dev/stdout) takes text and profiles, but no
// file that must appear whole or not at all.
enum class streams { allowed, refused };
// Whether it could be written: asked before the work that makes it. Says in words what is in the way.
[[nodiscard]] result<void> check_output(std::filesystem::path const& path, streams may_be);
// Replaces a regular file, writes into a stream. A descriptor by its name (/dev/stdout, /dev/fd/3) is a stream, whatever it leads to.
[[nodiscard]] result<void> write_output(std::filesystem::path const& path, byte_span data, unsigned mode = 0644);

// mkdir -p with `mode` for what is created.
[[nodiscard]] result<void> make_directories(std::filesystem::path const& path, unsigned mode = 0700);

// 16 random hexadecimal digits from the kernel's generator: unique over processes, namespaces and hosts.
[[nodiscard]] std::string random_name();

// Directory that is removed with its contents when this dies: for tests and scratch work.
class temporary_directory {
public:
    [[nodiscard]] static result<temporary_directory> make(std::string_view prefix = "kiln");
    temporary_directory(temporary_directory&& other) noexcept : path_{std::exchange(other.path_, {})} {}
    temporary_directory& operator=(temporary_directory&&) = delete;
    ~temporary_directory();
    [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }

private:
    explicit temporary_directory(std::filesystem::path path) : path_{std::move(path)} {}
    std::filesystem::path path_;
};

}  // namespace kiln::base
