// SPDX-License-Identifier: Apache-2.0
//
// The cache directory itself: may it be trusted, can it be written, which file system is it on, do locks work
// there. Checked at first use (the root, v1 and each folder in it), made at first write, and complained about once.
#pragma once

#include "store/disk_layout.hpp"
#include "store/event_outlet.hpp"
#include "store/flight.hpp"

#include <array>
#include <map>

namespace kiln::store {

enum class access { read_write, read_only };

// Who may read what is written here: the owner alone (0700, 0600), or whoever the umask lets (0755, 0644 less the umask).
// Nobody else may ever write.
enum class audience { owner, umask };
// Who may have made the directory: of one below a folder that everybody may write to nobody else, not even one that is only read.
enum class root_owner { anybody, us };

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
    std::string reason;      // why it cannot be used as asked, with the remedy; empty when it can
    std::string filesystem;  // "ext4", "nfs", ...; empty while missing
    bool remote = false;     // served by another machine
    lock_support locks = lock_support::unsupported;
};

class disk_directory {
public:
    struct options {
        access mode = access::read_write;
        audience readers = audience::owner;
        root_owner owner = root_owner::anybody;
    };
    disk_directory(std::filesystem::path root, options how, std::shared_ptr<event_outlet> events);

    [[nodiscard]] disk_layout const& layout() const noexcept { return layout_; }
    // Whether entries may be read. One lstat while the directory is missing, nothing once it was found good.
    [[nodiscard]] bool readable();
    // The same for the folder of a family. One lstat until it was found good, and an open where that does not tell enough. A folder that others control or that
    // is closed to us is passed over, and the others serve.
    [[nodiscard]] bool readable(digest const& family);
    // From now on passed over, as one that was found so.
    void pass_over(digest const& family, std::string why);
    // Why the folder of a family is passed over; empty when it is not.
    [[nodiscard]] std::string refusal(digest const& family);
    [[nodiscard]] unsigned entry_mode() const noexcept { return how_.readers == audience::umask ? 0644 : 0600; }
    // Whether entries may be written: makes the directories. errc::forbidden when they never will be.
    [[nodiscard]] result<void> make_writable();
    // Make again what someone deleted under us.
    [[nodiscard]] result<void> remake(digest const& family);
    // The file system refuses writes: keep reading, say it once.
    void become_read_only(std::string const& why);
    [[nodiscard]] lock_support locks();
    // Looks, but makes nothing.
    [[nodiscard]] directory_report report();
    // Also whether it takes files, or could be made, and what its locks do. Nothing is left behind.
    [[nodiscard]] directory_report probe();

private:
    [[nodiscard]] result<directory_state> inspect();
    struct verdict {
        bool there = false;
        std::string objection = {};  // why it is not to be used; empty: it may be, or is not there
    };
    [[nodiscard]] result<verdict> judge(std::filesystem::path const& folder);
    [[nodiscard]] std::string objection_to(std::filesystem::path const& folder, struct ::stat const& about) const;
    [[nodiscard]] unsigned folder_mode() const noexcept { return how_.readers == audience::umask ? 0755 : 0700; }
    void try_writing();
    void settle(directory_state state, std::string reason);
    [[nodiscard]] error cannot_make(error why);
    void look_at_filesystem(int fd);
    void warn(std::string_view reason, std::string_view detail);

    disk_layout layout_;
    options how_;
    std::shared_ptr<event_outlet> events_;
    mutable base::forkable_mutex mutex_;  // the members below; never held over a system call
    directory_report known_;
    bool probed_ = false;
    std::map<std::string, std::string, std::less<>> refused_;  // folders passed over, with the reason
    std::array<std::atomic<bool>, 256> good_folders_{};
    std::atomic<bool> good_{false};      // readable, settled
    std::atomic<bool> prepared_{false};  // writable, directories made
};

// One cache directory tried out as the store would use it: `reason` is empty if it can be used. For a diagnosis: nothing is
// made or left behind, and no event is emitted.
[[nodiscard]] directory_report try_directory(std::filesystem::path const& root, access mode);

}  // namespace kiln::store
