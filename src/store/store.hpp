// SPDX-License-Identifier: Apache-2.0
//
// The tiers in order (memory, disk, read-only disks, bundles, whatever was added) as one thing that finds and keeps entries.
// What a tier is it says by its traits: nothing here or above goes by names. A fault of a tier, running out of memory in it
// included, is an event and a counter, the tier rests for a while, and the next one answers: find() cannot fail. Puts reach
// memory at once and each persistent tier from a background thread of its own, started by the first put. Safe from any thread.
// After fork() the child has the same store, empties nothing, and drops the puts its parent had queued: the
// parent publishes them. No thread, file access or directory before the first use.
#pragma once

#include "base/config.hpp"
#include "store/bundle.hpp"
#include "store/disk_tier.hpp"
#include "store/memory_tier.hpp"
#include "store/statistics.hpp"

#include <functional>

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

struct slot;  // a tier in its place in the store

struct asked {
    std::string_view tier;
    miss why = miss::absent;
};

struct found {
    entry_ptr hit;                       // null on a miss; its origin says by which rules it may be used
    std::string_view tier;               // which one had it, for people
    location where = location::process;  // and where that one is
    miss why = miss::absent;             // on a miss: the most telling of the reasons below
    std::vector<asked> misses;           // every tier asked that did not have it, in order
    std::shared_ptr<slot> by;            // for used()
    std::int64_t ns = 0;                 // that the tier took
    explicit operator bool() const noexcept { return hit != nullptr; }
};

struct listed {
    summary what;
    std::string_view tier;  // for people
    std::shared_ptr<slot> by;
};

enum class visit { go_on, stop };

// What tiers that answer later said together.
struct far_answer {
    found what{};             // as from peek()
    unsigned next = 0;        // where a hit does not fit here: question::nth of the next one
    claim_ptr mine{};         // see answer
    std::string_view late{};  // see answer
    bool is_last = true;
    std::string said{};  // on a miss, for people: each that was asked and what came of it
};

enum class sharing { everywhere, this_machine };
struct put_how {
    flight leading{};
    claim_ptr under{};  // held until it is where others find it
    sharing how_far = sharing::everywhere;
};

// What was put and is not on a server that others share.
struct unsent_report {
    std::string place;
    std::uint64_t count = 0;
    std::string why;  // of the first, for people
};

// What became of everything that was put: once for each persistent tier that should keep it, and as lost where there is none.
struct kept_report {
    bool settled = true;  // nothing was waiting to be written any more
    std::uint64_t kept = 0;
    std::uint64_t lost = 0;
    counter_map reasons{};  // of what was lost, by stable code: "full", "unwritable", "enospc", "no-cache", ...
    std::string why{};      // the first of them, for people
    std::vector<unsent_report> unsent{};
    // All settled in time. What was lost is told by the numbers.
    explicit operator bool() const noexcept { return settled; }
};

// Whatever the deadline, an entry that the disk is to take is waited for so long, and all of them so long.
struct while_written {
    std::chrono::milliseconds each{0};
    std::chrono::milliseconds most{0};
};

class store {
public:
    store(store_options options, event_log& log);
    // Waits for queued puts, `options.drain` at most, then abandons them.
    ~store();
    store(store const&) = delete;
    store& operator=(store const&) = delete;

    // A tier asked after all others: embedded bundles, the fleet.
    void add_tier(std::shared_ptr<tier> more);
    // For what such a tier tells: it may outlive this, and the event log.
    [[nodiscard]] std::shared_ptr<event_outlet> const& outlet() const noexcept;

    // Looks and takes: peek() and, on a hit, used(). A miss is an event. Waits for tiers that answer later.
    [[nodiscard]] found find(address const& at, expectation const& expected);
    // Only looks: nothing is counted as a hit, renewed or copied. For who must still see whether it is what he needs. Tiers that
    // answer later are not asked: see ask().
    [[nodiscard]] found peek(address const& at, expectation const& expected);
    // The same in the tier that listed it.
    [[nodiscard]] found peek(listed const& candidate, expectation const& expected);
    // This one served: a hit and a request in the counters, an event, young again in its tier, and copied into nearer tiers
    // as its tier's traits say.
    // A leading flight is held until the machine's tier has it.
    void used(found const& what, flight leading = {});
    // Whether any tier answers later, and asking them, in their order, until one has it. Returns at once; see tier::ask() for
    // `then`. A claim is asked of the last of them that can be written.
    [[nodiscard]] bool has_far() const;
    void ask(question const& what, std::function<void(far_answer)> then);
    // One of them is: what was asked of it may never be answered.
    [[nodiscard]] bool is_one_held_up(urgency how) const;
    // What the tiers have of a family or request, in tier order. A tier is asked only when the caller went on after all that
    // the tiers before had. What a nearer tier has by the same rules is not shown again.
    void candidates(digest const& family, std::optional<digest> const& request,
                    std::function<visit(listed const&)> const& each);
    // All of them, each address once, by its first tier.
    [[nodiscard]] std::vector<listed> list(digest const& family, std::optional<digest> const& request = {});
    // Never blocks on a file. A leading flight is held until the entry is published, or dropped with it.
    void put(entry_ptr what, put_how how);
    void put(entry_ptr what, flight leading = {}) { put(std::move(what), put_how{.leading = std::move(leading)}); }
    // These bytes are never offered again by this process, and leave the disk.
    void reject(address const& at);

    // See flight.hpp. Blocks until `deadline` at most; look again after `leader` and after `finished`.
    [[nodiscard]] flight try_lead(digest const& request, base::time_point deadline);

    // Waits until what was put before is written and the counters are added, until `deadline` at most. Says what became of
    // everything put since the store was made.
    kept_report flush(base::time_point deadline, while_written beyond = {});
    // The same for the last time: what servers have not taken by then is counted and told as not sent, and the destructor waits no longer.
    kept_report finish(base::time_point deadline, while_written beyond);

    // Adds the engine's own counts: compiled and failed, each with its request; blocked, blocked_ms.
    void count(statistics const& more);
    // Since this store was made, whether or not added to the directory yet.
    [[nodiscard]] statistics counts() const;

    // nullopt: nothing is kept on disk.
    [[nodiscard]] std::optional<directory_report> directory();
    // The same, tried out: for a diagnosis.
    [[nodiscard]] std::optional<directory_report> probe_directory();
    // The read-only ones, tried out, in order. A `reason` that is not empty says why one does not serve.
    [[nodiscard]] std::vector<directory_report> probe_read_only() const;
    // Opens what is not open yet; those that could not be opened are left out (an event told why).
    [[nodiscard]] std::vector<std::shared_ptr<bundle_tier>> bundles();
    [[nodiscard]] std::vector<refused_bundle> refused_bundles();
    [[nodiscard]] store_options const& options() const noexcept { return options_; }

private:
    struct state;
    store_options options_;
    base::time_point end_by_ = base::time_point::max();
    std::shared_ptr<state> state_;
};

[[nodiscard]] std::unique_ptr<store> make_store(base::config const& config, event_log& log);

}  // namespace kiln::store
