// SPDX-License-Identifier: Apache-2.0
//
// The tiers in order (memory, disk, read-only disks, bundles) as one thing that finds and keeps entries. A fault of
// a tier is an event and a counter, the tier rests for a while, and the next one answers: find() cannot fail. Puts
// reach memory at once and the disk from one background thread, started by the first put. Safe from any thread.
// After fork() the child has the same store, empties nothing, and drops the puts its parent had queued: the
// parent publishes them. No thread, file access or directory before the first use.
#pragma once

#include "base/config.hpp"
#include "store/bundle.hpp"
#include "store/disk_tier.hpp"
#include "store/memory_tier.hpp"
#include "store/statistics.hpp"

namespace kiln::store {

enum class reuse { normal, recache };  // recache: persistent tiers are not asked, puts replace

struct store_options {
    memory_options memory;
    std::optional<disk_options> disk;                    // nullopt: nothing is kept on disk
    std::vector<std::filesystem::path> read_only_roots;  // further cache directories, in order
    std::vector<std::filesystem::path> bundles;          // files, or directories of *.kiln
    bool bundle_beside_program = false;                  // also <executable>.kiln, where there is one
    std::filesystem::path trusted_key;                   // not empty: only bundles signed by it are used
    reuse mode = reuse::normal;
    std::string no_disk_reason;  // said once as `warned` when not empty
    std::size_t queue_entries = 4096;
    std::uint64_t queue_bytes = std::uint64_t{512} << 20;
    std::chrono::milliseconds drain{200};         // at destruction
    std::chrono::milliseconds tier_rest{10'000};  // of a tier that failed `faults_to_rest` times running
    unsigned faults_to_rest = 3;
    std::chrono::milliseconds slow{2'000};  // a lookup that takes longer makes the tier rest
};

// KILN_CACHE_DIR and so on. Never fails: what cannot be used becomes an event at first use.
[[nodiscard]] store_options options_from(base::config const& config);

struct asked {
    std::string_view tier;
    miss why = miss::absent;
};

struct found {
    entry_ptr hit;              // null on a miss
    std::string_view tier;      // which one had it
    miss why = miss::absent;    // on a miss: the most telling of the reasons below
    std::vector<asked> misses;  // every tier asked that did not have it, in order
    explicit operator bool() const noexcept { return hit != nullptr; }
};

struct listed {
    summary what;
    std::string_view tier;
};

class store {
public:
    store(store_options options, event_log& log);
    // Waits for queued puts, `options.drain` at most, then abandons them.
    ~store();
    store(store const&) = delete;
    store& operator=(store const&) = delete;

    // A tier asked after all others: embedded bundles, later the fleet.
    void add_tier(std::shared_ptr<tier> more);

    [[nodiscard]] found find(address const& at, expectation const& expected);
    // What all tiers have of a family or request, in tier order; an address is listed once, by its first tier.
    [[nodiscard]] std::vector<listed> list(digest const& family, std::optional<digest> const& request = {});
    // Never blocks on a file. A leading flight is held until the entry is published, or dropped with it.
    void put(entry_ptr what, flight leading = {});
    // These bytes are never offered again by this process, and leave the disk.
    void reject(address const& at);

    // See flight.hpp. Blocks until `deadline` at most; look again after `leader` and after `finished`.
    [[nodiscard]] flight try_lead(digest const& request, base::time_point deadline);

    // Waits until what was put before is on disk and the counters are added; false if the deadline came first.
    bool flush(base::time_point deadline);

    // Adds the engine's own counts: requests, compiled, blocked, blocked_ms.
    void count(statistics const& more);
    // Since this store was made, whether or not added to the directory yet.
    [[nodiscard]] statistics counts() const;

    // nullopt: nothing is kept on disk.
    [[nodiscard]] std::optional<directory_report> directory();
    // The same, tried out: for a diagnosis.
    [[nodiscard]] std::optional<directory_report> probe_directory();
    // Opens what is not open yet; those that could not be opened are left out (an event told why).
    [[nodiscard]] std::vector<std::shared_ptr<bundle_tier>> bundles();
    [[nodiscard]] store_options const& options() const noexcept { return options_; }

private:
    struct state;
    store_options options_;
    std::shared_ptr<state> state_;
};

[[nodiscard]] std::unique_ptr<store> make_store(base::config const& config, event_log& log);

}  // namespace kiln::store
