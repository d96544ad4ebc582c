// SPDX-License-Identifier: Apache-2.0
//
// What a person does to a cache directory: look, prune, clear, check. Works beside running programs: they see entries
// disappear and carry on. Nothing here makes a directory, and files of newer formats are left alone.
#pragma once

#include "store/disk_directory.hpp"
#include "store/statistics.hpp"
#include "store/usage.hpp"

#include <chrono>

namespace kiln::store {

struct cached {
    summary what;
    std::filesystem::path path;
    std::chrono::seconds unused_for{};  // since the entry was made or last found; never negative
};

struct prune_options {
    std::optional<std::chrono::seconds> older_than;  // not used for longer than this
    std::optional<std::uint64_t> to_bytes;           // least recently used first, until no more than this is left
    enum class run { real, dry } mode = run::real;
};

struct prune_report {
    std::uint64_t removed = 0;
    std::uint64_t removed_bytes = 0;
    usage left;
};

struct verify_report {
    std::uint64_t checked = 0;
    std::uint64_t checked_bytes = 0;
    std::uint64_t newer = 0;  // of a newer format, not checked
    struct bad_file {
        std::filesystem::path path;
        miss why;
    };
    std::vector<bad_file> bad;
};

class maintenance {
public:
    explicit maintenance(std::filesystem::path root);

    [[nodiscard]] std::filesystem::path const& path() const noexcept { return layout_.root(); }
    // By counting the files, not from the account.
    [[nodiscard]] result<usage> count();
    [[nodiscard]] result<scan_result> scan();
    // Valid headers only, most recently used first. Payloads are not read.
    [[nodiscard]] result<std::vector<cached>> list();
    [[nodiscard]] result<prune_report> prune(prune_options const& options);
    [[nodiscard]] result<prune_report> clear();
    // Reads and checks every entry whole. Bad ones are reported, and removed with `remove_bad`.
    enum class bad_entries { report, remove };
    [[nodiscard]] result<verify_report> verify(bad_entries what);
    [[nodiscard]] result<statistics> counters();
    [[nodiscard]] result<void> zero_counters();

private:
    [[nodiscard]] result<void> trusted();
    disk_layout layout_;
    usage_account account_;
};

}  // namespace kiln::store
