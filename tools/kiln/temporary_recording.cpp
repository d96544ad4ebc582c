// SPDX-License-Identifier: Apache-2.0
#include "temporary_recording.hpp"

#include "base/files.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln::cli {

namespace {

constexpr int of_a_folder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// As others have it: what is empty is not set.
std::pair<std::string_view, std::filesystem::path> folder_for_temporaries() {
    for (auto const* const name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"})
        if (auto const* const value = std::getenv(name); value != nullptr && *value != '\0') return {name, value};
    return {"", "/tmp"};
}

bool is_mount_point(int folder, char const* name) {
    struct ::statx about {};
    return ::statx(folder, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &about) == 0 &&
           (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

void empty_folder(int folder);

// But for what is mounted there, which is somebody else's.
void remove_entry(int folder, char const* name) {
    if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) return;
    if (::unlinkat(folder, name, 0) == 0 || is_mount_point(folder, name)) return;
    int below = ::openat(folder, name, of_a_folder);
    if (below < 0 && errno == EACCES && ::fchmodat(folder, name, 0700, 0) == 0)
        below = ::openat(folder, name, of_a_folder);
    if (below < 0) return;
    empty_folder(below);
    ::close(below);
    ::unlinkat(folder, name, AT_REMOVEDIR);
}

void empty_folder(int folder) {
    ::fchmod(folder, 0700);  // the program may have taken our rights
    ::lseek(folder, 0, SEEK_SET);
    alignas(::dirent64) char entries[1024];  // small: folders may be deep
    for (;;) {
        auto const size = ::syscall(SYS_getdents64, folder, entries, sizeof entries);
        if (size <= 0) return;
        for (long at = 0; at < size;) {
            auto const* const entry = reinterpret_cast<::dirent64 const*>(entries + at);
            at += entry->d_reclen;
            remove_entry(folder, entry->d_name);
        }
    }
}

std::atomic<temporary_recording const*> removed_by_signal{nullptr};

// With SA_RESETHAND and SA_NODEFER the second one is our end. The first process of a container has to end by itself.
void remove_and_end(int signal) {
    if (auto const* const what = removed_by_signal.exchange(nullptr)) (void)what->remove();
    ::raise(signal);
    ::_exit(128 + signal);
}

}  // namespace

temporary_recording::temporary_recording(std::string path)
    : path_{std::move(path)}, doomed_{path_ + "-" + base::random_name()} {
    struct ::stat about {};
    if (::stat(path_.c_str(), &about) == 0) is_ = {about.st_dev, about.st_ino};
}

result<temporary_recording> temporary_recording::make() {
    auto const [variable, named] = folder_for_temporaries();
    std::error_code why;
    auto path = (std::filesystem::absolute(named, why) / "kiln-audit-XXXXXX").native();
    if (!why && ::mkdtemp(path.data()) != nullptr) return temporary_recording{path};
    int const status = why ? why.value() : errno;
    return error{
        errc::io,
        fmt::format("no temporary folder can be made in {}{}: {}; name one that can be written (TMPDIR, --keep)",
                    named.native(), variable.empty() ? "" : fmt::format(" ({})", variable), std::strerror(status))}
        .with_status(status);
}

// -1: there is none any more, or it is not ours.
int temporary_recording::open() const {
    struct ::stat about {};
    for (auto const* const name : {path_.c_str(), doomed_.c_str()}) {
        if (::lstat(name, &about) != 0 || is_ != std::pair{about.st_dev, about.st_ino}) continue;
        int folder = ::open(name, of_a_folder);
        if (folder < 0 && errno == EACCES && ::chmod(name, 0700) == 0) folder = ::open(name, of_a_folder);
        if (folder < 0) continue;
        if (::fstat(folder, &about) == 0 && is_ == std::pair{about.st_dev, about.st_ino}) return folder;
        ::close(folder);
    }
    return -1;
}

int temporary_recording::remove() const {
    struct ::stat about {};
    if (::lstat(path_.c_str(), &about) == 0 && S_ISLNK(about.st_mode)) ::unlink(path_.c_str());
    int const folder = open();
    if (folder < 0) return 0;
    bool const is_renamed = ::rename(path_.c_str(), doomed_.c_str()) == 0 || errno == ENOENT;  // or was before
    auto const* const name = (is_renamed ? doomed_ : path_).c_str();
    // Who was about to put something into it is done after a few rounds.
    constexpr int most_rounds = 10;
    int why = 0;
    for (int i = 0; i < most_rounds; ++i) {
        empty_folder(folder);
        why = ::rmdir(name) == 0 ? 0 : errno;
        if (why == 0) break;
    }
    ::close(folder);
    return why;
}

std::string temporary_recording::left_at() const { return ::access(doomed_.c_str(), F_OK) == 0 ? doomed_ : path_; }

removal_by_signals::removal_by_signals(temporary_recording const& what) {
    removed_by_signal.store(&what);
    struct ::sigaction action {};
    action.sa_handler = remove_and_end;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    auto* before = before_;
    for (int const signal : signals) {
        ::sigaction(signal, nullptr, before);
        if (before->sa_handler == SIG_DFL) ::sigaction(signal, &action, nullptr);
        ++before;
    }
}

removal_by_signals::~removal_by_signals() {
    auto const* before = before_;
    for (int const signal : signals) ::sigaction(signal, before++, nullptr);
    removed_by_signal.store(nullptr);
}

}  // namespace kiln::cli
