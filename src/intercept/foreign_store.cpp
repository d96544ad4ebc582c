// SPDX-License-Identifier: Apache-2.0
#include "intercept/foreign_store.hpp"

#include "base/quiet_writes.hpp"
#include "intercept/run_log.hpp"
#include "store/store.hpp"

#include <kiln/version.hpp>

#include <algorithm>
#include <charconv>

namespace kiln::intercept {

namespace {

using namespace std::chrono_literals;

constexpr auto patience_with_leader = 10s;
constexpr auto pause_of_waiter = 2s;                     // between looks at whether the leader is at work
constexpr std::chrono::milliseconds longest_cost = 24h;  // nobody waits so long for a compile
constexpr std::string_view for_whom = " for ";

}  // namespace

std::string producer_text(std::string_view program, std::chrono::milliseconds cost) {
    return fmt::format("kiln {}{}{}, {} ms", kiln::version, program.empty() ? "" : for_whom, program, cost.count());
}

std::string_view program_in(std::string_view producer) {
    auto const from = producer.find(for_whom);
    auto const end = producer.rfind(", ");
    if (from == producer.npos || end == producer.npos || end < from + for_whom.size()) return {};
    return producer.substr(from + for_whom.size(), end - from - for_whom.size());
}

std::chrono::milliseconds cost_in(std::string_view producer) {
    auto const comma = producer.rfind(", ");
    std::int64_t ms = 0;
    if (comma != producer.npos) std::from_chars(producer.data() + comma + 2, producer.data() + producer.size(), ms);
    return std::chrono::milliseconds{std::clamp<std::int64_t>(ms, 0, longest_cost.count())};
}

foreign_store::foreign_store(base::config const& settings, std::filesystem::path const& capsule) {
    auto options = store::options_from(settings);
    if (!capsule.empty() && !settings.flag("KILN_DISABLE")) options.read_only_roots.push_back(capsule);
    auto const outlet = std::make_shared<store::event_outlet>(nullptr);
    remake_ = options.mode == store::reuse::recache;
    if (options.disk) {
        if (remake_) options.disk->rule = store::put_rule::replace;
        tiers_.push_back(std::make_unique<store::disk_tier>(*std::move(options.disk), outlet));
    }
    for (auto& root : options.read_only_roots) {
        tiers_.push_back(std::make_unique<store::disk_tier>(
            store::disk_options{.root = std::move(root), .mode = store::access::read_only}, outlet));
    }
}

foreign_store::~foreign_store() { flush(); }

std::optional<foreign_hit> foreign_store::take(store::disk_tier& tier, store::address const& at, foreign_id const& id,
                                               look_roots const& roots, std::string& why) {
    auto found = tier.find(at, {.target = {}, .kind = id.kind, .toolchain = id.toolchain});
    if (!found) return std::nullopt;
    if (!found->hit) {
        if (!store::is_rejection(found->why)) return std::nullopt;
        note_rejection(at, found->why);
        why = fmt::format("what was kept is damaged: {}", name_of(found->why));
        return std::nullopt;
    }
    auto entry = decode_foreign_entry(found->hit->payload);
    if (!entry) {
        tier.reject(at);
        note_rejection(at, store::miss::refused);
        why = entry.error().message();
        return std::nullopt;
    }
    if (auto change = first_change(entry->looks, roots, contents_); !change.empty()) {
        why = std::move(change);
        return std::nullopt;
    }
    tier.used(at);
    {
        std::lock_guard const lock{mutex_};
        counts_.requests += 1;
        counts_.hits["disk"] += 1;
    }
    return foreign_hit{at, std::move(entry->answer), cost_in(found->hit->about.producer), entry->looks.size()};
}

void foreign_store::note_rejection(store::address const& at, store::miss why) {
    {
        std::lock_guard const lock{mutex_};
        counts_.rejected[std::string{name_of(why)}] += 1;
    }
    if (listener_) listener_(at, why);
}

bool foreign_store::remove(store::address const& at) {
    base::quiet_writes const quiet;
    bool is_gone = true;
    for (auto const& tier : tiers_) {
        auto const found = tier->find(at, {});
        if (!found || !found->hit) continue;
        tier->reject(at);
        auto const left = tier->list(at.family, at.request);
        is_gone = is_gone && left && std::ranges::none_of(*left, [&](auto const& one) { return one.about.at == at; });
    }
    return is_gone;
}

foreign_search foreign_store::find(foreign_id const& id, look_roots const& roots) {
    foreign_search out{.hit = {}, .why = remake_ ? "recache" : "new"};
    if (remake_) return out;
    // Most requests read no file: found at once by the key that such a one has.
    store::address const plain{id.digests.family, id.digests.request, key_of(id.digests.request, {})};
    for (auto const& tier : tiers_) {
        if ((out.hit = take(*tier, plain, id, roots, out.why))) return out;
    }
    for (auto const& tier : tiers_) {
        auto const candidates = tier->list(id.digests.family, id.digests.request);
        if (!candidates) continue;
        for (auto const& one : *candidates) {
            if (one.about.at == plain) continue;
            if ((out.hit = take(*tier, one.about.at, id, roots, out.why))) return out;
        }
    }
    return out;
}

bool foreign_store::has(foreign_id const& id) {
    store::address const at{id.digests.family, id.digests.request, key_of(id.digests.request, {})};
    for (auto const& tier : tiers_) {
        auto const found = tier->find(at, {.target = {}, .kind = id.kind, .toolchain = id.toolchain});
        if (found && store::is_rejection(found->why) && !found->hit) note_rejection(at, found->why);
        if (!found || !found->hit) continue;
        tier->used(at);
        return true;
    }
    return false;
}

bool foreign_store::holds(store::address const& at) {
    return std::ranges::any_of(tiers_, [&](auto const& tier) {
        auto const found = tier->find(at, {});
        return found && found->hit;
    });
}

store::flight foreign_store::lead(base::digest const& request) {
    if (tiers_.empty() || tiers_.front()->options().mode == store::access::read_only) return {};
    base::quiet_writes const quiet;
    store::leader_watch watch{patience_with_leader};
    for (;;) {
        auto const now = base::clock::now();
        auto out = tiers_.front()->try_lead(request, now + pause_of_waiter);
        if (out.outcome() != store::flight_outcome::timed_out || !watch.at_work(out, base::clock::now())) return out;
    }
}

foreign_store::thread_end::~thread_end() {
    if (!of_.tiers_.empty()) of_.tiers_.front()->rest();
}

result<store::address> foreign_store::keep(foreign_id const& id, foreign_entry const& what,
                                           std::chrono::milliseconds cost) {
    {
        std::lock_guard const lock{mutex_};
        if (id.kind == kind_nvrtc || id.kind == kind_nvjitlink) counts_.requests += 1, counts_.compiled += 1;
    }
    if (tiers_.empty() || tiers_.front()->options().mode == store::access::read_only)
        return fail(errc::forbidden, "nothing may be written");
    auto entry = std::make_shared<store::entry>();
    auto const short_text = [](std::string const& text) { return text.substr(0, 256); };
    entry->about = {.at = {id.digests.family, id.digests.request, key_of(id.digests.request, what.looks)},
                    .name = short_text(id.name),
                    .target = short_text(id.target),
                    .kind = id.kind,
                    .toolchain = id.toolchain,
                    .producer = producer_text(id.by, cost),
                    .licence = {}};
    entry->payload = encode(what);
    base::quiet_writes const quiet;
    auto put = tiers_.front()->put(entry);
    if (!put) return std::move(put).error();
    if (put->kept) return entry->about.at;
    if (put->why == "too-large") return fail(errc::io, "{}", too_large);
    return fail(errc::io, "{}{}{}", put->why, put->detail.empty() ? "" : ": ", put->detail);
}

void foreign_store::count_wait(std::chrono::milliseconds time) {
    std::lock_guard const lock{mutex_};
    counts_.blocked += 1;
    counts_.blocked_ms += static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count()));
}

void foreign_store::count_failure() {
    std::lock_guard const lock{mutex_};
    counts_.requests += 1;
    counts_.failed += 1;
}

void foreign_store::flush() {
    if (tiers_.empty()) return;
    store::statistics more;
    {
        std::lock_guard const lock{mutex_};
        more = std::exchange(counts_, {});
    }
    base::quiet_writes const quiet;
    more.add(tiers_.front()->take_counts());
    if (!more.empty()) (void)tiers_.front()->add_to_directory(more);
}

}  // namespace kiln::intercept
