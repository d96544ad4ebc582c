// SPDX-License-Identifier: Apache-2.0
#include "base/files.hpp"

#include "base/quiet_writes.hpp"
#include "base/replace_name.hpp"
#include "base/standard_streams.hpp"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln::base {

namespace {

// Threads of the program write entries, counters and locks for us. Where it may write files of a certain size only (ulimit -f), one
// that is too long is an error of that write: the signal would end a program that wrote nothing itself.
template <class Write>
long without_signal(Write write) {
    if (!has_bound_on_files()) return write();
    quiet_writes const quiet;
    return write();
}

constexpr system_calls real{
    .open = [](char const* path, int flags, unsigned mode) { return ::open(path, flags, mode); },
    .read = [](int fd, void* data, std::size_t size) -> long { return ::read(fd, data, size); },
    .write = [](int fd, void const* data, std::size_t size) -> long {
        return without_signal([&] { return ::write(fd, data, size); });
    },
    .close = [](int fd) { return ::close(fd); },
    .rename = [](char const* from, char const* to) { return ::rename(from, to); },
    .unlink = [](char const* path) { return ::unlink(path); },
    .fstat = [](int fd, struct ::stat* out) { return ::fstat(fd, out); },
    .lstat = [](char const* path, struct ::stat* out) { return ::lstat(path, out); },
    .mkdir = [](char const* path, unsigned mode) { return ::mkdir(path, mode); },
    .fsync = [](int fd) { return ::fsync(fd); },
    .flock = [](int fd, int operation) { return ::flock(fd, operation); },
    .utimensat = [](int dir, char const* path, struct ::timespec const times[2],
                    int flags) { return ::utimensat(dir, path, times, flags); },
    .pread = [](int fd, void* data, std::size_t size, long offset) -> long { return ::pread(fd, data, size, offset); },
    .pwrite = [](int fd, void const* data, std::size_t size, long offset) -> long {
        return without_signal([&] { return ::pwrite(fd, data, size, offset); });
    },
    .linkat = [](int from_dir, char const* from, int to_dir, char const* to,
                 int flags) { return ::linkat(from_dir, from, to_dir, to, flags); },
    .rename_new =
        [](char const* from, char const* to) {
            return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE));
        },
    .getdents = [](int fd, void* data, std::size_t size) -> long { return ::syscall(SYS_getdents64, fd, data, size); },
    .fstatfs = [](int fd, struct ::statfs* out) { return ::fstatfs(fd, out); },
    .statx = [](int dir, char const* path, int flags, unsigned mask,
                struct ::statx* out) { return ::statx(dir, path, flags, mask, out); },
};

std::atomic<system_calls const*> installed{&real};

}  // namespace

system_calls const& sys() noexcept { return *installed.load(std::memory_order_acquire); }
system_calls const& real_system_calls() noexcept { return real; }
void install_system_calls(system_calls const* calls) noexcept {
    installed.store(calls != nullptr ? calls : &real, std::memory_order_release);
}

file_descriptor& file_descriptor::operator=(file_descriptor&& other) noexcept {
    if (this != &other) {
        reset();
        fd_ = other.release();
    }
    return *this;
}

void file_descriptor::reset() noexcept {
    if (fd_ >= 0) sys().close(release());
}

result<void> file_descriptor::close() {
    // After EINTR Linux has closed the descriptor all the same; trying again could close another's.
    if (fd_ >= 0 && sys().close(release()) != 0 && errno != EINTR) return io_error("close", errno);
    return {};
}

namespace {

int open_above_standard_streams(char const* path, int flags, unsigned mode) {
    auto const open = [&] { return sys().open(path, flags | O_CLOEXEC, mode); };
    if ((flags & (O_ACCMODE | O_CREAT | O_TRUNC)) != O_RDONLY) return above_standard_streams(open);
    // Nobody's words go into what is opened for reading: the numbers are looked at only where it got one of them.
    int const fd = open();
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    sys().close(fd);
    return above_standard_streams(open);
}

}  // namespace

result<file_descriptor> open_file(std::filesystem::path const& path, int flags, unsigned mode) {
    for (;;) {
        auto const fd = open_above_standard_streams(path.c_str(), flags, mode);
        if (fd >= 0) return file_descriptor{fd};
        if (errno != EINTR) return io_error(path.native(), errno);
    }
}

result<void> write_all(int fd, byte_span data) {
    while (!data.empty()) {
        auto const count = sys().write(fd, data.data(), data.size());
        if (count > 0) data = data.subspan(static_cast<std::size_t>(count));
        else if (count == 0) return io_error("write", ENOSPC);
        else if (errno != EINTR) return io_error("write", errno);
    }
    return {};
}

result<bytes> read_all(int fd, std::size_t most) {
    struct ::stat about {};
    std::size_t expected = 0;
    if (sys().fstat(fd, &about) == 0 && about.st_size > 0) expected = static_cast<std::size_t>(about.st_size);
    if (expected > most) return fail(errc::corrupt, "file has {} bytes, more than the {} allowed", expected, most);
    // One byte more than expected, so that the end of the file is seen without growing the buffer.
    bytes out(expected + 1);
    std::size_t size = 0;
    for (;;) {
        auto const count = sys().read(fd, out.data() + size, out.size() - size);
        if (count < 0) {
            if (errno == EINTR) continue;
            return io_error("read", errno);
        }
        if (count == 0) break;
        size += static_cast<std::size_t>(count);
        if (size > most) return fail(errc::corrupt, "file has more than the {} bytes allowed", most);
        if (size == out.size()) out.resize(out.size() * 2);
    }
    out.resize(size);
    return out;
}

result<std::optional<bytes>> read_file(std::filesystem::path const& path, std::size_t most) {
    auto file = open_file(path, O_RDONLY | O_NONBLOCK);
    if (!file) {
        if (file.error().status() == ENOENT || file.error().status() == ENOTDIR) return std::optional<bytes>{};
        return std::move(file).error();
    }
    struct ::stat about {};
    if (sys().fstat(file->get(), &about) != 0) return io_error(path.native(), errno);
    if (!S_ISREG(about.st_mode)) return fail(errc::invalid_argument, "{}: not a regular file", path.native());
    auto data = read_all(file->get(), most);
    if (!data) return std::move(data).error().within(path.native());
    return std::optional<bytes>{*std::move(data)};
}

namespace {

enum class target_kind { absent, regular, directory, stream };

struct target {
    target_kind kind = target_kind::absent;
    std::filesystem::path file;       // with its links followed
    std::optional<int> descriptor{};  // one of this process that the name stands for
};

// /dev/stdout, /dev/fd/3, /proc/self/fd/3 and links to them: what is meant is the descriptor, with what was written to it before and
// will be after, and not the file that it happens to lead to.
std::optional<int> descriptor_named(std::filesystem::path path) {
    constexpr int most_links = 40;
    auto const own = fmt::format("/proc/{}/", ::getpid());
    for (int i = 0; i < most_links; ++i) {
        std::error_code why;
        auto const folder = std::filesystem::canonical(path.has_parent_path() ? path.parent_path() : ".", why);
        if (why) return {};
        auto const name = path.filename().native();
        if (folder.native().starts_with(own) && folder.filename() == "fd") {
            int number = 0;
            auto const [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
            if (problem == std::errc{} && end == name.data() + name.size()) return number;
        }
        auto const next = std::filesystem::read_symlink(path, why);
        if (why) return {};
        path = folder / next;
    }
    return {};
}

// What a name leads to. A link to nothing is nobody's wish: neither it nor what it names is made.
result<target> target_of(std::filesystem::path const& path) {
    struct ::stat about {};
    target out{target_kind::absent, path, descriptor_named(path)};
    if (out.descriptor) {
        if (sys().fstat(*out.descriptor, &about) != 0) return io_error(path.native(), errno);
        out.kind = S_ISDIR(about.st_mode) ? target_kind::directory : target_kind::stream;
        return out;
    }
    if (sys().lstat(path.c_str(), &about) != 0) {
        if (errno == ENOENT) return out;
        return io_error(path.native(), errno);
    }
    if (S_ISLNK(about.st_mode)) {
        if (::stat(path.c_str(), &about) != 0) {
            if (errno != ENOENT) return io_error(path.native(), errno);
            return fail(errc::invalid_argument, "{} is a link to nothing; remove it, or make what it points to",
                        path.native());
        }
        std::error_code nameless;  // an open file that was removed, a pipe in /proc/self/fd
        out.file = std::filesystem::canonical(path, nameless);
        if (nameless) out.file = path;
        out.kind = nameless && S_ISREG(about.st_mode) ? target_kind::stream : target_kind::regular;
    }
    if (S_ISDIR(about.st_mode)) out.kind = target_kind::directory;
    else if (!S_ISREG(about.st_mode)) out.kind = target_kind::stream;
    else if (out.kind == target_kind::absent) out.kind = target_kind::regular;
    return out;
}

error is_a_directory(std::filesystem::path const& path) {
    return fail(errc::invalid_argument, "{} is a directory; name a file", path.native());
}
error is_a_stream(std::filesystem::path const& path, target const& to) {
    if (to.descriptor)
        return fail(errc::invalid_argument, "{} is an open file that others write to as well; name a file",
                    path.native());
    return fail(errc::invalid_argument, "{} is not a regular file and is left as it is; name a file", path.native());
}

result<void> replace_regular(std::filesystem::path const& path, byte_span data, unsigned mode, durability how) {
    auto temporary = path;
    temporary += ".tmp-" + random_name();
    auto write = [&]() -> result<void> {
        KILN_TRY(auto file, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL, mode));
        KILN_CHECK(write_all(file.get(), data));
        if (how == durability::synced && sys().fsync(file.get()) != 0) return io_error("fsync", errno);
        KILN_CHECK(file.close());
        if (sys().rename(temporary.c_str(), path.c_str()) != 0) return io_error("rename", errno);
        return {};
    };
    auto done = write();
    if (!done) {
        sys().unlink(temporary.c_str());
        return std::move(done).error().within(path.native());
    }
    return {};
}

}  // namespace

result<void> replace_file(std::filesystem::path const& path, byte_span data, unsigned mode, durability how) {
    KILN_TRY(auto const to, target_of(path));
    if (to.kind == target_kind::directory) return is_a_directory(path);
    if (to.kind == target_kind::stream) return is_a_stream(path, to);
    return replace_regular(to.file, data, mode, how);
}

result<void> replace_name(std::filesystem::path const& path, byte_span data, unsigned mode) {
    return replace_regular(path, data, mode, durability::none);
}

result<void> check_output(std::filesystem::path const& path, streams may_be) {
    if (path.empty()) return fail(errc::invalid_argument, "the name of the output is empty; name a file");
    auto const parent = [](std::filesystem::path const& file) {
        return file.has_parent_path() ? file.parent_path() : std::filesystem::path{"."};
    };
    std::error_code ignored;
    if (auto const folder = parent(path); !std::filesystem::is_directory(folder, ignored))
        return fail(errc::not_found, "{}: there is no directory {}; make it first", path.native(), folder.native());
    KILN_TRY(auto const to, target_of(path));
    if (to.kind == target_kind::directory || !path.has_filename()) return is_a_directory(path);
    if (to.kind == target_kind::stream) {
        if (may_be == streams::refused) return is_a_stream(path, to);
        if (to.descriptor) {
            bool const is_read = (::fcntl(*to.descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY;
            return is_read ? result<void>{io_error(path.native(), EBADF)} : result<void>{};
        }
        if (::access(path.c_str(), W_OK) != 0) return io_error(path.native(), errno);
        return {};
    }
    auto const folder = parent(to.file);
    if (::access(folder.c_str(), W_OK) != 0) return io_error(folder.native(), errno);
    return {};
}

result<void> write_output(std::filesystem::path const& path, byte_span data, unsigned mode) {
    KILN_TRY(auto const to, target_of(path));
    if (to.kind != target_kind::stream) return replace_file(path, data, mode);
    if (to.descriptor) {
        if (auto done = write_all(*to.descriptor, data); !done) return std::move(done).error().within(path.native());
        return {};
    }
    KILN_TRY(auto file, open_file(path, O_WRONLY | O_NOCTTY));
    if (auto done = write_all(file.get(), data); !done) return std::move(done).error().within(path.native());
    return file.close();
}

result<void> make_directories(std::filesystem::path const& path, unsigned mode) {
    if (sys().mkdir(path.c_str(), mode) == 0) return {};
    int const why = errno;
    if (why == ENOENT && path.has_parent_path() && path.parent_path() != path) {
        KILN_CHECK(make_directories(path.parent_path(), mode));
        if (sys().mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return {};
        return io_error(path.native(), errno);
    }
    if (why != EEXIST) return io_error(path.native(), why);
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) return io_error(path.native(), ENOTDIR);
    return {};
}

std::string random_name() {
    std::uint64_t value = 0;
    if (::getrandom(&value, sizeof value, 0) != static_cast<long>(sizeof value)) {
        // Only on kernels older than getrandom: uniqueness within the host is then all there is.
        static std::atomic<std::uint64_t> counter{0};
        value = static_cast<std::uint64_t>(::getpid()) << 32 ^ counter.fetch_add(1);
    }
    return fmt::format("{:016x}", value);
}

result<temporary_directory> temporary_directory::make(std::string_view prefix) {
    std::error_code why;
    auto const base = std::filesystem::temp_directory_path(why);
    if (why) return io_error("temporary directory", why.value());
    auto path = (base / fmt::format("{}-XXXXXX", prefix)).native();
    if (::mkdtemp(path.data()) == nullptr) return io_error(path, errno);
    return temporary_directory{std::filesystem::path{path}};
}

temporary_directory::~temporary_directory() {
    if (path_.empty()) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace kiln::base
