// SPDX-License-Identifier: Apache-2.0
#include "store/disk_directory.hpp"

#include "base/file_systems.hpp"
#include "store/errno_names.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace kiln::store {

namespace {

struct filesystem_kind {
    base::file_system magic;
    std::string_view name;
    bool remote;
};
// A remote one may cache, reorder and lock in ways of its own.
constexpr auto known_filesystems = [] {
    using enum base::file_system;
    return std::array{filesystem_kind{nfs, "nfs", true},           filesystem_kind{smb, "smb", true},
                      filesystem_kind{cifs, "cifs", true},         filesystem_kind{smb2, "smb2", true},
                      filesystem_kind{lustre, "lustre", true},     filesystem_kind{gpfs, "gpfs", true},
                      filesystem_kind{beegfs, "beegfs", true},     filesystem_kind{ceph, "ceph", true},
                      filesystem_kind{afs, "afs", true},           filesystem_kind{fuse, "fuse", true},
                      filesystem_kind{plan9, "9p", true},          filesystem_kind{overlay, "overlayfs", false},
                      filesystem_kind{ext4, "ext4", false},        filesystem_kind{xfs, "xfs", false},
                      filesystem_kind{btrfs, "btrfs", false},      filesystem_kind{tmpfs, "tmpfs", false},
                      filesystem_kind{zfs, "zfs", false},          filesystem_kind{f2fs, "f2fs", false},
                      filesystem_kind{bcachefs, "bcachefs", false}};
}();

bool is_about_permission(int number) noexcept { return number == EACCES || number == EPERM || number == EROFS; }

}  // namespace

std::string_view name_of(directory_state state) noexcept {
    switch (state) {
        case directory_state::unused: return "unused";
        case directory_state::missing: return "missing";
        case directory_state::writable: return "writable";
        case directory_state::read_only: return "read-only";
        case directory_state::off: return "off";
    }
    return "unknown";
}

disk_directory::disk_directory(std::filesystem::path root, options how, std::shared_ptr<event_outlet> events)
    : layout_{std::move(root)}, how_{how}, events_{std::move(events)} {
    known_.root = layout_.root();
}

namespace {

bool is_trusted(struct ::stat const& about) noexcept { return about.st_uid == ::geteuid() || about.st_uid == 0; }

bool is_open_to_owner(struct ::stat const& about) noexcept {
    return S_ISDIR(about.st_mode) && about.st_uid == ::geteuid() && (about.st_mode & S_IRWXU) == S_IRWXU;
}

}  // namespace

// Whoever can write here can make us run their code: a folder must be ours (or root's) and nobody else's to write. One that
// is only read may belong to whoever was chosen to share it.
std::string disk_directory::objection_to(std::filesystem::path const& folder, struct ::stat const& about) const {
    auto const& path = folder.native();
    bool const must_be_ours = how_.mode == access::read_write || how_.owner == root_owner::us;
    if (must_be_ours && !is_trusted(about))
        return fmt::format("{}: belongs to user {}; set KILN_CACHE_DIR to a directory of your own", path, about.st_uid);
    auto const forbidden = how_.mode == access::read_write ? S_IWGRP | S_IWOTH : S_IWOTH;
    // Never of a folder that is not this user's alone to close: of /tmp others live.
    bool const is_ours_to_close = about.st_uid == ::geteuid() && (about.st_mode & S_ISVTX) == 0;
    if ((about.st_mode & static_cast<mode_t>(forbidden)) != 0)
        return fmt::format("{}: others may write there; {}", path,
                           is_ours_to_close ? "chmod go-w it" : "name a directory of your own in it");
    return {};
}

result<disk_directory::verdict> disk_directory::judge(std::filesystem::path const& folder) {
    auto const& path = folder.native();
    struct ::stat about {};
    if (base::sys().lstat(folder.c_str(), &about) != 0) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ESTALE) return verdict{};
        return verdict{.there = true, .objection = io_error(path, errno).message()};
    }
    auto const objecting = [](std::string why) { return verdict{.there = true, .objection = std::move(why)}; };
    // Inside a root that is good nobody else can put another folder in its place: its name is as sure as the folder itself.
    if (folder != layout_.root() && is_open_to_owner(about)) return objecting(objection_to(folder, about));
    if (S_ISLNK(about.st_mode) && !is_trusted(about)) {
        return objecting(
            fmt::format("{}: is a symbolic link of user {}; remove it or set KILN_CACHE_DIR", path, about.st_uid));
    }
    auto const fd = base::open_file(folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (!fd) {
        auto const number = fd.error().status();
        if (number == EMFILE || number == ENFILE) return fd.error();
        if (number == EACCES && how_.mode == access::read_only) {
            return objecting(fmt::format("{}; whoever fills it sets KILN_CACHE_MODE=shared, or chmod -R a+rX it",
                                         fd.error().message()));
        }
        return objecting(fd.error().message());
    }
    if (base::sys().fstat(fd->get(), &about) != 0) return io_error(path, errno);
    auto objection = objection_to(folder, about);
    if (objection.empty() && folder == layout_.root()) look_at_filesystem(fd->get());
    return objecting(std::move(objection));
}

result<directory_state> disk_directory::inspect() {
    for (auto const* folder : {&layout_.root(), &layout_.v1()}) {
        KILN_TRY(auto seen, judge(*folder));
        if (!seen.there && folder == &layout_.root()) return directory_state::missing;
        if (seen.objection.empty()) continue;
        settle(directory_state::off, std::move(seen.objection));
        return directory_state::off;
    }
    return how_.mode == access::read_only ? directory_state::read_only : directory_state::writable;
}

bool disk_directory::readable(digest const& family) {
    if (!readable()) return false;
    auto const number = family.bytes[0];
    if (good_folders_[number].load(std::memory_order_acquire)) return true;
    auto const folder = layout_.shard(family);
    {
        std::lock_guard const lock{mutex_};
        if (refused_.contains(folder.native())) return false;
    }
    auto seen = judge(folder);
    if (!seen) return false;
    if (!seen->objection.empty()) {
        pass_over(family, std::move(seen->objection));
        return false;
    }
    // What is not there yet may be made by anybody: it is looked at again.
    if (seen->there) good_folders_[number].store(true, std::memory_order_release);
    return true;
}

void disk_directory::pass_over(digest const& family, std::string why) {
    {
        std::lock_guard const lock{mutex_};
        if (!refused_.emplace(layout_.shard(family).native(), why).second) return;
    }
    good_folders_[family.bytes[0]].store(false, std::memory_order_release);
    warn("folder-off", why);
}

std::string disk_directory::refusal(digest const& family) {
    if (readable(family)) return {};
    std::lock_guard const lock{mutex_};
    auto const at = refused_.find(layout_.shard(family).native());
    return at == refused_.end() ? known_.reason : at->second;
}

void disk_directory::look_at_filesystem(int fd) {
    struct ::statfs about {};
    if (base::sys().fstatfs(fd, &about) != 0) return;
    auto const magic = base::look_of(about).kind;
    std::string name = fmt::format("0x{:x}", static_cast<std::uint32_t>(magic));
    bool remote = false;
    for (auto const& kind : known_filesystems) {
        if (kind.magic == magic) name = kind.name, remote = kind.remote;
    }
    bool tell = false;
    {
        std::lock_guard const lock{mutex_};
        tell = remote && !known_.remote;
        known_.filesystem = name;
        known_.remote = remote;
    }
    if (tell && how_.mode == access::read_write) {
        warn("remote-filesystem",
             fmt::format("{} is on {}: a local KILN_CACHE_DIR is faster", layout_.root().native(), name));
    }
}

bool disk_directory::readable() {
    if (good_.load(std::memory_order_acquire)) return true;
    {
        std::lock_guard const lock{mutex_};
        if (known_.state == directory_state::off) return false;
    }
    auto const state = inspect();
    if (!state || *state == directory_state::off) return false;
    if (*state == directory_state::missing) return false;
    if (how_.mode == access::read_only) settle(directory_state::read_only, "opened read-only");
    good_.store(true, std::memory_order_release);
    return true;
}

result<void> disk_directory::make_writable() {
    if (prepared_.load(std::memory_order_acquire)) return {};
    if (how_.mode == access::read_only) return fail(errc::forbidden, "{}: opened read-only", layout_.root().native());
    {
        std::lock_guard const lock{mutex_};
        if (known_.state == directory_state::off || known_.state == directory_state::read_only) {
            return fail(errc::forbidden, "{}", known_.reason);
        }
    }
    KILN_TRY(auto state, inspect());
    if (state == directory_state::missing) {
        if (auto made = base::make_directories(layout_.root(), folder_mode()); !made)
            return cannot_make(std::move(made).error());
        KILN_TRY(state, inspect());
    }
    if (state == directory_state::off) return fail(errc::forbidden, "{}", report().reason);
    auto const make = [](std::filesystem::path const& path, unsigned mode) {
        return base::make_directories(path, mode);
    };
    if (auto made = make(layout_.v1(), folder_mode()); !made) return cannot_make(std::move(made).error());
    for (auto const& path : {layout_.temporaries(), layout_.locks()}) {
        if (auto made = make(path, 0700); !made) return cannot_make(std::move(made).error());
    }
    settle(directory_state::writable, {});
    good_.store(true, std::memory_order_release);
    prepared_.store(true, std::memory_order_release);
    return {};
}

error disk_directory::cannot_make(error why) {
    auto const number = why.status();
    if (is_about_permission(number)) {
        become_read_only(why.message());
        return fail(errc::forbidden, "{}", why.message());
    }
    if (number == ENOTDIR || number == ELOOP || number == ENAMETOOLONG || number == ENOENT) {
        settle(directory_state::off, why.message());
        return fail(errc::forbidden, "{}", why.message());
    }
    return why;
}

void disk_directory::become_read_only(std::string const& why) {
    prepared_.store(false, std::memory_order_release);
    settle(directory_state::read_only, why);
}

result<void> disk_directory::remake(digest const& family) {
    auto const shard = layout_.shard(family);
    if (base::sys().mkdir(shard.c_str(), folder_mode()) == 0 || errno == EEXIST) return {};
    if (errno != ENOENT) return io_error(shard.native(), errno);
    prepared_.store(false, std::memory_order_release);  // all of it was deleted under us
    KILN_CHECK(make_writable());
    if (base::sys().mkdir(shard.c_str(), folder_mode()) == 0 || errno == EEXIST) return {};
    return io_error(shard.native(), errno);
}

lock_support disk_directory::locks() {
    {
        std::lock_guard const lock{mutex_};
        if (probed_) return known_.locks;
    }
    if (!make_writable()) return lock_support::unsupported;
    auto support = probe_locks(layout_.locks() / "probe");
    if (!support && support.error().status() == ENOENT) {
        prepared_.store(false, std::memory_order_release);  // deleted under us
        if (make_writable()) support = probe_locks(layout_.locks() / "probe");
    }
    if (!support) return lock_support::unsupported;  // for now
    {
        std::lock_guard const lock{mutex_};
        known_.locks = *support;
        if (std::exchange(probed_, true)) return *support;
    }
    if (*support != lock_support::excludes) {
        events_->emit({.kind = event_kind::fell_back,
                       .reason = "in-process-flight",
                       .detail = fmt::format("{}: flock {}", layout_.root().native(), name_of(*support))});
    }
    return *support;
}

directory_report disk_directory::probe() {
    auto const before = report();
    if (before.state == directory_state::writable) {
        if (auto const ready = make_writable(); ready) {
            (void)locks();
            try_writing();
        }
        return report();
    }
    if (before.state != directory_state::missing) return before;
    auto out = before;
    if (how_.mode == access::read_only) {
        out.reason = fmt::format("{}: no such directory", out.root.native());
        return out;
    }
    // Not made for a question: could it be?
    auto parent = layout_.root().parent_path();
    std::error_code ignored;
    while (parent.has_relative_path() && !std::filesystem::exists(parent, ignored)) parent = parent.parent_path();
    if (!std::filesystem::is_directory(parent, ignored)) {
        out.reason = io_error(parent.native(), ENOTDIR).message();
    } else if (::access(parent.c_str(), W_OK | X_OK) != 0 ||
               // It says that it may be written, and may not.
               base::file_system_at(parent.c_str()).kind == base::file_system::procfs) {
        out.reason = fmt::format("{}: cannot be made in {}", out.root.native(), parent.native());
    }
    return out;
}

// One page that is gone when it is closed: a full disk, a quota and a read-only file system all show.
void disk_directory::try_writing() {
    auto const folder = layout_.temporaries();
    auto const file = base::open_file(folder, O_TMPFILE | O_WRONLY, 0600);
    auto const number = file ? 0 : file.error().status();
    bool const no_unnamed = number == EOPNOTSUPP || number == EISDIR || number == EINVAL || number == ENOSYS;
    if (no_unnamed && ::access(folder.c_str(), W_OK) == 0) return;
    auto const written = file ? base::write_all(file->get(), base::bytes(4096)) : result<void>{file.error()};
    if (written) return;
    auto const why =
        fmt::format("{}: {}", folder.native(), io_error("no file can be written", written.error().status()).message());
    if (is_about_permission(written.error().status())) return become_read_only(why);
    std::lock_guard const lock{mutex_};
    known_.reason = why;
}

directory_report disk_directory::report() {
    (void)readable();
    auto state = directory_state::unused;
    {
        std::lock_guard const lock{mutex_};
        state = known_.state;
    }
    if (state == directory_state::unused) {
        if (auto const seen = inspect()) state = *seen;
    }
    std::lock_guard const lock{mutex_};
    auto out = known_;
    if (out.state == directory_state::unused) out.state = state;
    return out;
}

void disk_directory::settle(directory_state state, std::string reason) {
    bool tell = false;
    {
        std::lock_guard const lock{mutex_};
        tell =
            state == directory_state::off || (state == directory_state::read_only && how_.mode == access::read_write);
        tell = tell && known_.state != state;
        known_.state = state;
        known_.reason = reason;
    }
    if (tell) warn(state == directory_state::off ? "directory-off" : "directory-read-only", reason);
}

void disk_directory::warn(std::string_view reason, std::string_view detail) {
    events_->emit({.kind = event_kind::warned, .reason = reason, .detail = reason_first(detail)});
}

directory_report try_directory(std::filesystem::path const& root, access mode) {
    disk_directory directory{root, {.mode = mode}, std::make_shared<event_outlet>(nullptr)};
    auto out = directory.probe();
    // A directory that is only to be read is asked for nothing else.
    if (mode == access::read_only && out.state == directory_state::read_only) out.reason.clear();
    return out;
}

}  // namespace kiln::store
