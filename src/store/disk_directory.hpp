// SPDX-License-Identifier: Apache-2.0
//
// The cache directory itself: may it be trusted, can it be written, which file system is it on, do locks work
// there. Checked at first use, made at first write (mode 0700), and complained about once.
#pragma once

#include "store/disk_layout.hpp"
#include "store/event_outlet.hpp"
#include "store/flight.hpp"

namespace kiln::store {

enum class access { read_write, read_only };

enum class directory_state {
    unused,   // not looked at yet
    missing,  // not there and not made
    writable,
    read_only,  // by choice or because the file system says so
    off,        // not ours, not a directory, open to others: neither read nor written
};
[[nodiscard]] std::string_view name_of(directory_state state) noexcept;

struct directory_report {
    std::filesystem::path root;
    directory_state state = directory_state::unused;
    std::string reason;      // why not writable; empty when it is
    std::string filesystem;  // "ext4", "nfs", ...; empty while missing
    bool remote = false;     // served by another machine
    lock_support locks = lock_support::unsupported;
};

class disk_directory {
public:
    disk_directory(std::filesystem::path root, access mode, std::shared_ptr<event_outlet> events);

    [[nodiscard]] disk_layout const& layout() const noexcept { return layout_; }
    // Whether entries may be read. One lstat while the directory is missing, nothing once it was found good.
    [[nodiscard]] bool readable();
    // Whether entries may be written: makes the directories. errc::forbidden when they never will be.
    [[nodiscard]] result<void> make_writable();
    // Make again what someone deleted under us.
    [[nodiscard]] result<void> remake(digest const& family);
    // The file system refuses writes: keep reading, say it once.
    void become_read_only(std::string const& why);
    [[nodiscard]] lock_support locks();
    // Looks, but makes nothing.
    [[nodiscard]] directory_report report();
    // Of a directory that is there: also whether it takes files, and what its locks do.
    [[nodiscard]] directory_report probe();

private:
    [[nodiscard]] result<directory_state> inspect();
    void settle(directory_state state, std::string reason);
    [[nodiscard]] error cannot_make(error why);
    void look_at_filesystem(int fd);
    void warn(std::string_view reason, std::string_view detail);

    disk_layout layout_;
    access mode_;
    std::shared_ptr<event_outlet> events_;
    mutable forkable_mutex mutex_;  // the members below; never held over a system call
    directory_report known_;
    bool probed_ = false;
    std::atomic<bool> good_{false};      // readable, settled
    std::atomic<bool> prepared_{false};  // writable, directories made
};

}  // namespace kiln::store
