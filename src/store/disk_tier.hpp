// SPDX-License-Identifier: Apache-2.0
//
// Entries as files, one each, shared by all processes of a user (and, if so chosen, read by others): <root>/v1/<ff>/<family16>-<request16>-<key64>.kiln.
// Publication is one atomic step; a reader checks everything and removes what fails. Nothing is touched before the
// first use, and no directory is made before the first put. Writing stops for a while after a write fault. No mmap.
// Locks save work and keep the size bound; without working locks only the bound is looser.
#pragma once

#include "store/disk_directory.hpp"
#include "store/event_outlet.hpp"
#include "store/flight_keeper.hpp"
#include "store/publish_file.hpp"
#include "store/refusals.hpp"
#include "store/statistics.hpp"
#include "store/tier.hpp"
#include "store/usage.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <set>

namespace kiln::store {

enum class put_rule { keep_valid, replace };

struct disk_options {
    std::filesystem::path root;
    access mode = access::read_write;
    audience readers = audience::owner;  // KILN_CACHE_MODE
    root_owner owner = root_owner::anybody;
    put_rule rule = put_rule::keep_valid;  // replace: KILN_RECACHE
    std::uint64_t max_bytes = std::uint64_t{5} << 30;
    std::uint64_t max_entry_bytes = std::uint64_t{256} << 20;
    std::chrono::milliseconds write_rest{30'000};  // after a write fault
    std::chrono::seconds touch_interval{600};      // recency of an entry is renewed at most this often
    std::chrono::seconds stale_temporary{3600};    // older temporaries and lock files are swept
    std::chrono::milliseconds beat{1'000};         // how often a leader shows that it is at work
};

// What became of counters that were to be added to those of the directory.
enum class adding {
    done,
    busy,     // somebody else is at it
    nowhere,  // the directory is missing, closed to us, or nothing was ever kept in it
};

class disk_tier final : public tier {
public:
    disk_tier(disk_options options, std::shared_ptr<event_outlet> events);
    ~disk_tier() override;

    [[nodiscard]] std::string_view name() const noexcept override { return "disk"; }
    [[nodiscard]] tier_traits traits() const noexcept override;
    [[nodiscard]] result<lookup> find(address const& at, expectation const& expected) override;
    [[nodiscard]] result<std::vector<summary>> list(digest const& family,
                                                    std::optional<digest> const& request) override;
    // Not kept, without an error, while writing rests and for entries larger than the bound.
    [[nodiscard]] result<put_outcome> put(entry_ptr const& what) override;
    void used(address const& at) override;
    void reject(address const& at) override;

    // Single flight between the processes that share this directory. Blocks until `deadline` at most.
    [[nodiscard]] flight try_lead(digest const& request, base::time_point deadline);
    // Leaves no thread behind where nothing is led any more.
    void rest() { keeper_.rest(); }

    // What this instance counted since the last call: published, evicted, dropped, divergent, errors.
    [[nodiscard]] statistics take_counts() override;
    // Adds to the directory's counters; false if their lock was busy or there is nowhere to write.
    [[nodiscard]] adding add_to_directory(statistics const& more);

    [[nodiscard]] directory_report report();
    [[nodiscard]] directory_report probe();
    [[nodiscard]] disk_options const& options() const noexcept { return options_; }
    [[nodiscard]] bool resting() const noexcept;

private:
    void remove_invalid(std::filesystem::path const& path, struct ::stat const& seen, address const& at);
    [[nodiscard]] put_outcome not_kept(std::string_view why, std::string detail = {});
    [[nodiscard]] result<void> publish(entry const& what, base::byte_span data);
    [[nodiscard]] result<void> settle_existing(entry const& what, base::byte_span data);
    [[nodiscard]] bool make_room(std::uint64_t bytes);
    void give_back(std::size_t bytes);
    void told_of_publication(entry const& what, std::size_t bytes);
    void told_of_eviction(std::uint64_t entries, std::uint64_t bytes);
    void write_fault(error const& why);
    void count_error(std::string_view why);
    [[nodiscard]] std::atomic<std::uint64_t>& young_slot(address const& at) noexcept {
        return young_[at.key.bytes[0] % young_.size()];
    }

    disk_options options_;
    std::shared_ptr<event_outlet> events_;
    disk_directory directory_;
    usage_account usage_;
    flight_keeper keeper_;
    publish_modes modes_;
    std::atomic<unsigned> puts_{0};
    refusals refused_;
    // Of entries just read that were used lately: used(), which comes next, need not look at the file again.
    std::array<std::atomic<std::uint64_t>, 64> young_{};
    mutable base::forkable_mutex mutex_;  // the members below
    statistics counts_;
    std::set<digest> bad_;  // keys found invalid in a read-only directory: not read again
    base::time_point resting_until_{};
};

}  // namespace kiln::store
