// SPDX-License-Identifier: Apache-2.0
// The writing half of disk_tier: room is reserved, then a complete file appears. See usage.hpp and publish_file.hpp.
#include "store/disk_tier.hpp"
#include "store/entry_format.hpp"
#include "store/errno_names.hpp"
#include "store/eviction.hpp"
#include "store/read_entry.hpp"

#include <cerrno>
#include <thread>
#include <unistd.h>

namespace kiln::store {

namespace {

using namespace std::chrono_literals;

constexpr auto patience_with_evictor = 1000ms;
constexpr unsigned count_every = 64;  // puts, where the account cannot be trusted

}  // namespace

result<put_outcome> disk_tier::put(entry_ptr const& what) {
    KILN_ASSERT(what != nullptr);
    if (options_.mode == access::read_only)
        return fail(errc::forbidden, "{}: opened read-only", options_.root.native());
    if (resting()) return not_kept("resting", "nothing is written for a while after a write failed");
    auto const& at = what->about.at;
    if (refused_.any() && refused_.has(at.key, base::sha256_of(what->payload))) return not_kept("refused");
    if (what->payload.size() > options_.max_entry_bytes) return not_kept("too-large");
    KILN_TRY(auto const data, encode_entry(*what));
    if (data.size() > options_.max_bytes) {
        return not_kept("too-large", fmt::format("'{}' has {} bytes and the bound of the cache (KILN_MAX_SIZE) is {}",
                                                 what->about.name, data.size(), options_.max_bytes));
    }
    if (auto ready = directory_.make_writable(); !ready) {
        if (ready.error().code() == errc::forbidden) return not_kept("unwritable", ready.error().message());
        write_fault(ready.error());
        return std::move(ready).error();
    }
    if (auto refusal = directory_.refusal(at.family); !refusal.empty())
        return not_kept("unwritable", std::move(refusal));
    if (!make_room(data.size())) return not_kept("full", "no room could be made in time");
    auto done = publish(*what, data);
    if (!done) {
        give_back(data.size());
        // One folder of another's, in a directory that takes files otherwise, is one folder.
        if (done.error().status() == EACCES && ::access(directory_.layout().temporaries().c_str(), W_OK) == 0 &&
            ::access(directory_.layout().shard(at.family).c_str(), W_OK) != 0) {
            auto why = done.error().message();
            directory_.pass_over(at.family, why);
            return not_kept("unwritable", std::move(why));
        }
        write_fault(done.error());
        return std::move(done).error();
    }
    return put_outcome{};
}

result<void> disk_tier::publish(entry const& what, base::byte_span data) {
    publish_place const place{.final = directory_.layout().entry(what.about.at),
                              .temporaries = directory_.layout().temporaries(),
                              .mode = directory_.entry_mode()};
    auto const rule = options_.rule == put_rule::replace ? publish_rule::replace : publish_rule::keep_existing;
    struct ::stat old {};
    bool const over =
        rule == publish_rule::replace && base::sys().lstat(place.final.c_str(), &old) == 0 && S_ISREG(old.st_mode);
    auto outcome = publish_file(place, data, rule, modes_);
    if (!outcome && outcome.error().status() == ENOENT) {
        KILN_CHECK(directory_.remake(what.about.at.family));
        outcome = publish_file(place, data, rule, modes_);
    }
    if (!outcome) return std::move(outcome).error().within(place.final.native());
    if (*outcome == publish_outcome::exists) return settle_existing(what, data);
    if (over) (void)usage_.add(-std::int64_t{old.st_size}, -1);
    told_of_publication(what, data.size());
    return {};
}

void disk_tier::told_of_publication(entry const& what, std::size_t bytes) {
    {
        std::lock_guard const lock{mutex_};
        counts_.published += 1;
        bad_.erase(what.about.at.key);
    }
    events_->emit({.kind = event_kind::published,
                   .unit = what.about.name,
                   .target = what.about.target,
                   .reason = name(),
                   .key = what.about.at.key.prefix(),
                   .value = static_cast<std::int64_t>(bytes)});
}

// The first writer wins: a valid entry stays, whatever its bytes. An invalid one is replaced.
result<void> disk_tier::settle_existing(entry const& what, base::byte_span data) {
    publish_place const place{.final = directory_.layout().entry(what.about.at),
                              .temporaries = directory_.layout().temporaries(),
                              .mode = directory_.entry_mode()};
    KILN_TRY(auto const there, read_entry(place.final, options_.max_entry_bytes, writers::owner));
    bool const newer = there.why == miss::newer_format;
    bool const valid = there.what && there.what->about.at == what.about.at &&
                       there.what->about.target == what.about.target && there.what->about.kind == what.about.kind &&
                       there.what->about.toolchain == what.about.toolchain &&
                       !refused_.has(what.about.at.key, there.payload);
    if (newer || valid) {
        give_back(data.size());
        if (newer || there.what->payload == what.payload) return {};
        {
            std::lock_guard const lock{mutex_};
            counts_.divergent += 1;
        }
        events_->emit({.kind = event_kind::note,
                       .unit = what.about.name,
                       .target = what.about.target,
                       .reason = "divergent",
                       .detail = "another process made other bytes for the same key; the first are kept",
                       .key = what.about.at.key.prefix()});
        return {};
    }
    auto outcome = publish_file(place, data, publish_rule::replace, modes_);
    if (!outcome) return std::move(outcome).error().within(place.final.native());
    if (S_ISREG(there.seen.st_mode)) (void)usage_.add(-std::int64_t{there.seen.st_size}, -1);
    told_of_publication(what, data.size());
    return {};
}

void disk_tier::give_back(std::size_t bytes) { (void)usage_.add(-static_cast<std::int64_t>(bytes), -1); }

// Reserves `bytes` and evicts where needed. False: no room could be made in time.
bool disk_tier::make_room(std::uint64_t bytes) {
    auto const max = options_.max_bytes;
    auto const hard = max + max / 8;  // while another process evicts, others may go this far
    auto const puts = puts_.fetch_add(1);
    bool const count_now = (puts == 0 && sweep_is_due(directory_.layout(), options_.stale_temporary)) ||
                           (puts % count_every == 0 && directory_.locks() != lock_support::excludes);
    auto const deadline = base::clock::now() + patience_with_evictor;
    auto sum = usage_.add(static_cast<std::int64_t>(bytes), 1);
    for (bool reserved = sum.has_value();;) {
        if (sum && sum->bytes <= max && !count_now) return true;
        auto const report =
            evict(directory_.layout(), usage_,
                  {.max_bytes = max,
                   .low_bytes = max - max / 10,
                   .incoming = bytes,
                   .need = reserved ? eviction_limits::when::always : eviction_limits::when::account_missing,
                   .stale = options_.stale_temporary});
        if (!report) {
            count_error(errno_name(report.error().status()));
            return true;  // the write itself will tell what is wrong
        }
        if (report->state == eviction_state::done) {
            told_of_eviction(report->evicted, report->evicted_bytes);
            return true;
        }
        if (reserved && sum && sum->bytes <= hard) return true;
        if (base::clock::now() >= deadline) {
            if (reserved) give_back(bytes);
            return false;
        }
        if (report->state == eviction_state::busy) std::this_thread::sleep_for(1ms);
        sum = reserved ? usage_.read() : usage_.add(static_cast<std::int64_t>(bytes), 1);
        reserved = reserved || sum.has_value();
    }
}

void disk_tier::told_of_eviction(std::uint64_t entries, std::uint64_t bytes) {
    if (entries == 0) return;
    {
        std::lock_guard const lock{mutex_};
        counts_.evicted += entries;
        counts_.evicted_bytes += bytes;
    }
    events_->emit({.kind = event_kind::evicted,
                   .reason = name(),
                   .detail = fmt::format("{} entries", entries),
                   .value = static_cast<std::int64_t>(bytes)});
}

void disk_tier::count_error(std::string_view why) {
    std::lock_guard const lock{mutex_};
    counts_.errors[std::string{why}] += 1;
}

}  // namespace kiln::store
