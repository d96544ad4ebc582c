// SPDX-License-Identifier: Apache-2.0
#include "store/disk_tier.hpp"

#include "base/directory.hpp"
#include "store/errno_names.hpp"
#include "store/expectations.hpp"
#include "store/read_entry.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <thread>

namespace kiln::store {

namespace {

using base::sys;
using namespace std::chrono_literals;

// An error about one name, or about this process: says nothing about the disk.
bool says_nothing_of_disk(int number) noexcept {
    switch (number) {
        case EMFILE:
        case ENFILE:
        case ENOMEM:
        case EINTR:
        case ENOENT:
        case EEXIST:
        case EISDIR:
        case ENOTEMPTY:
        case ENOTDIR:
        case ESTALE: return true;
        default: return false;
    }
}

// Of an entry that was last used then: is it time to say that it is used again? Also for a time in the future.
bool is_due(struct ::stat const& seen, std::chrono::seconds interval) noexcept {
    auto const age = std::int64_t{::time(nullptr)} - std::int64_t{seen.st_mtim.tv_sec};
    return age > interval.count() || age < -interval.count();
}

}  // namespace

disk_tier::disk_tier(disk_options options, std::shared_ptr<event_outlet> events)
    : options_{std::move(options)},
      events_{std::move(events)},
      directory_{options_.root, {.mode = options_.mode, .readers = options_.readers, .owner = options_.owner}, events_},
      usage_{directory_.layout()},
      keeper_{options_.beat} {}

disk_tier::~disk_tier() = default;

tier_traits disk_tier::traits() const noexcept {
    return {.where = location::machine,
            .writable = options_.mode == access::read_write,
            .persistent = true,
            .headers_sealed = false,
            .any_compiler = false,
            .on_hit = fill::process};
}

result<lookup> disk_tier::find(address const& at, expectation const& expected) {
    if (!directory_.readable(at.family)) return lookup{};
    {
        std::lock_guard const lock{mutex_};
        if (!bad_.empty() && bad_.contains(at.key)) return lookup{};
    }
    auto const path = directory_.layout().entry(at);
    auto const allowed = options_.mode == access::read_only ? writers::owner_and_group : writers::owner;
    KILN_TRY(auto read, read_entry(path, options_.max_entry_bytes, allowed));
    if (read.what) {
        auto const wrong = mismatch(read.what->about, at, expected);
        if (!wrong && !refused_.has(at.key, read.payload)) {
            read.what->from = origin_of(traits());
            young_slot(at).store(is_due(read.seen, options_.touch_interval) ? 0 : at.key.prefix(),
                                 std::memory_order_relaxed);
            return lookup{.hit = std::move(read.what)};
        }
        read.why = wrong.value_or(miss::refused);
    }
    // A valid entry under its own name is left alone even if the rest of its address is another: names hold only a part.
    bool const at_home = read.why == miss::wrong_key && path.filename() == entry_name(read.what->about.at);
    if (is_rejection(read.why) && read.why != miss::newer_format && !at_home) remove_invalid(path, read.seen, at);
    return lookup{.hit = {}, .why = read.why};
}

// Only the very file that was read: another may have replaced it by a good one.
void disk_tier::remove_invalid(std::filesystem::path const& path, struct ::stat const& seen, address const& at) {
    struct ::stat now {};
    if (sys().lstat(path.c_str(), &now) != 0 || now.st_ino != seen.st_ino || now.st_dev != seen.st_dev) return;
    if (options_.mode == access::read_write && sys().unlink(path.c_str()) == 0) {
        // A lookup does not wait for the account: what it cannot subtract now, the next count will.
        if (S_ISREG(seen.st_mode)) (void)usage_.add(-std::int64_t{seen.st_size}, -1, std::chrono::milliseconds{0});
        return;
    }
    std::lock_guard const lock{mutex_};
    bad_.insert(at.key);
}

// Recency is ours to keep: access times are off or coarse on most systems. A time in the future is brought back.
void disk_tier::used(address const& at) {
    if (options_.mode == access::read_only) return;
    if (young_slot(at).load(std::memory_order_relaxed) == at.key.prefix()) return;
    auto const path = directory_.layout().entry(at);
    struct ::stat seen {};
    if (sys().lstat(path.c_str(), &seen) != 0 || !is_due(seen, options_.touch_interval)) return;
    sys().utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

result<std::vector<summary>> disk_tier::list(digest const& family, std::optional<digest> const& request) {
    std::vector<summary> out;
    if (!directory_.readable(family)) return out;
    auto const shard = directory_.layout().shard(family);
    auto const prefix = name_prefix(family, request);
    std::vector<std::pair<std::int64_t, summary>> some;
    KILN_CHECK(base::for_each_name(shard, [&](std::string_view name) {
        if (!name.starts_with(prefix) || !is_entry_name(name)) return;
        auto about = read_label(shard / name, options_.max_entry_bytes);
        if (!about || about->what.about.at.family != family) return;
        if (request && about->what.about.at.request != *request) return;
        about->what.from = origin_of(traits());
        some.emplace_back(about->used_ns, std::move(about->what));
    }));
    std::sort(some.begin(), some.end(), [](auto const& a, auto const& b) {
        return std::tie(b.first, b.second.about.at.key) < std::tie(a.first, a.second.about.at.key);
    });
    for (auto& [used, what] : some) out.push_back(std::move(what));
    return out;
}

void disk_tier::reject(address const& at) {
    if (!directory_.readable(at.family)) return;
    auto const path = directory_.layout().entry(at);
    // By the header alone: whoever rejects an entry holds one copy of it already.
    auto const there = read_label(path, options_.max_entry_bytes);
    struct ::stat seen {};
    if (!there || there->what.about.at != at || sys().lstat(path.c_str(), &seen) != 0) return;
    refused_.add(at.key, there->payload);
    remove_invalid(path, seen, at);
}

flight disk_tier::try_lead(digest const& request, base::time_point deadline) {
    if (resting() || directory_.locks() != lock_support::excludes) return flight{flight_outcome::unsupported};
    auto leading = lead_at(directory_.layout().lock(request), deadline);
    // The directory may have been deleted under us: make it again, once.
    if (leading.outcome() == flight_outcome::unsupported && directory_.remake(request))
        leading = lead_at(directory_.layout().lock(request), deadline);
    keeper_.keep(leading);
    return leading;
}

statistics disk_tier::take_counts() {
    std::lock_guard const lock{mutex_};
    return std::exchange(counts_, {});
}

adding disk_tier::add_to_directory(statistics const& more) {
    if (options_.mode == access::read_only || !directory_.readable() || resting()) return adding::nowhere;
    auto const& layout = directory_.layout();
    auto const added = add_statistics(layout.statistics(), layout.statistics_lock(), more);
    if (!added) return adding::nowhere;
    return *added ? adding::done : adding::busy;
}

directory_report disk_tier::report() { return directory_.report(); }
directory_report disk_tier::probe() { return directory_.probe(); }

bool disk_tier::resting() const noexcept {
    std::lock_guard const lock{mutex_};
    return base::clock::now() < resting_until_;
}

put_outcome disk_tier::not_kept(std::string_view why, std::string detail) {
    std::lock_guard const lock{mutex_};
    counts_.dropped += 1;
    counts_.errors[std::string{why}] += 1;
    return {.kept = false, .why = why, .detail = std::move(detail)};
}

// One event when the rest begins, not one per kernel.
void disk_tier::write_fault(error const& why) {
    bool tell = false;
    {
        std::lock_guard const lock{mutex_};
        counts_.errors[errno_name(why.status())] += 1;
        counts_.dropped += 1;
        auto const now = base::clock::now();
        if (!says_nothing_of_disk(why.status())) {
            tell = now >= resting_until_;
            resting_until_ = now + options_.write_rest;
        }
    }
    if (why.status() == EROFS || why.status() == EACCES) directory_.become_read_only(why.message());
    else if (tell) events_->emit({.kind = event_kind::fault, .reason = name(), .detail = reason_first(why.message())});
}

}  // namespace kiln::store
