// SPDX-License-Identifier: Apache-2.0
//
// How many bytes the directory holds, kept in one small file so that nobody has to count. Advisory: a reservation is
// added before an entry appears, so the number errs upwards, and every eviction counts the files and corrects it.
#pragma once

#include "base/clock.hpp"
#include "base/locked_file.hpp"
#include "store/disk_layout.hpp"
#include "store/flight.hpp"

#include <atomic>

namespace kiln::store {

struct usage {
    std::uint64_t bytes = 0;
    std::uint64_t entries = 0;
};

class usage_account {
public:
    explicit usage_account(disk_layout layout) : layout_{std::move(layout)} {}

    // Adds to the account under its lock and gives the new sum; nullopt: the account is missing or damaged and must be
    // rebuilt by counting, or could not be locked in time.
    [[nodiscard]] std::optional<usage> add(std::int64_t bytes, std::int64_t entries,
                                           std::chrono::milliseconds patience = std::chrono::milliseconds{500});
    [[nodiscard]] std::optional<usage> read();
    // Sets it to what was counted plus what was added since `before` was read.
    void set(usage counted, std::optional<usage> before);

private:
    [[nodiscard]] base::locked_file lock(std::chrono::milliseconds patience);
    disk_layout layout_;
};

// One entry file as seen by a scan. Times are wall clock, as found: clamp before comparing.
struct stored_file {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    std::int64_t used_ns = 0;
};

struct scan_result {
    std::vector<stored_file> files;
    usage total;
};
[[nodiscard]] result<scan_result> scan_entries(disk_layout const& layout);

// Now by the clock of the file system that holds the directory, which may differ from ours.
[[nodiscard]] std::int64_t filesystem_now_ns(disk_layout const& layout);

}  // namespace kiln::store
