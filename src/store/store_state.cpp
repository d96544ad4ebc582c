// SPDX-License-Identifier: Apache-2.0
#include "store/store_state.hpp"

#include "store/errno_names.hpp"

#include <cerrno>

namespace kiln::store {

namespace {

bool says_nothing_of_tier(error const& why) noexcept {
    auto const number = why.status();
    return number == EMFILE || number == ENFILE || number == ENOMEM || why.code() == errc::out_of_memory;
}

bool reaches(fill how, location where) noexcept {
    switch (how) {
        case fill::nothing: return false;
        case fill::process: return where == location::process;
        case fill::machine: return where == location::process || where == location::machine;
    }
    return false;
}

}  // namespace

miss most_telling(std::vector<asked> const& misses) noexcept {
    bool recache = false, absent = misses.empty();
    for (auto const& m : misses) {
        if (is_rejection(m.why)) return m.why;
        recache = recache || m.why == miss::recache;
        absent = absent || m.why == miss::absent;
    }
    if (recache) return miss::recache;
    return absent ? miss::absent : miss::disabled;
}

std::shared_ptr<slot> store::state::slot_for(std::shared_ptr<tier> t) {
    auto const limits =
        health_limits{.faults_to_rest = options.faults_to_rest, .rest = options.tier_rest, .slow = options.slow};
    auto out = std::make_shared<slot>(std::move(t), limits);
    auto const traits = out->what->traits();
    if (!traits.writable || !traits.persistent) return out;
    // Weak: an abandoned thread must not keep itself alive; it holds the state only while it works.
    out->queue = std::make_unique<publisher>(
        traits.where == location::fleet
            ? publisher_limits{.entries = 256, .bytes = std::uint64_t{64} << 20}
            : publisher_limits{.entries = options.queue_entries, .bytes = options.queue_bytes},
        publisher::tasks{.publish =
                             [self = weak_from_this(), to = std::weak_ptr{out}](entry_ptr const& e, errand why) {
                                 auto const s = self.lock();
                                 auto const tier = to.lock();
                                 if (s && tier) s->publish(*tier, e, why);
                             },
                         .idle =
                             [self = weak_from_this(), is_disk = out->what == disk] {
                                 if (auto const s = self.lock()) s->add_counts_sometimes(is_disk);
                             }});
    return out;
}

void store::state::assemble() {
    auto made = std::make_shared<slots>();
    made->push_back(slot_for(std::make_shared<memory_tier>(options.memory)));
    if (options.disk) {
        auto how = *options.disk;
        if (options.mode == reuse::recache) how.rule = put_rule::replace;
        disk = std::make_shared<disk_tier>(std::move(how), events);
        disk_slot = slot_for(disk);
        made->push_back(disk_slot);
    }
    for (auto const& root : options.read_only_roots) {
        made->push_back(
            slot_for(std::make_shared<disk_tier>(disk_options{.root = root, .mode = access::read_only}, events)));
    }
    current = std::move(made);
}

void store::state::append(std::shared_ptr<slot> const& s) {
    auto more = std::make_shared<slots>(*current);
    more->push_back(s);
    current = std::move(more);
}

// As many as are known without opening a file.
std::shared_ptr<slots const> store::state::open_tiers() {
    std::lock_guard const lock{mutex};
    return current;
}

// Bundles are opened by the first lookup that gets past the disk. Threads that come together may each open them;
// the first set is kept.
std::shared_ptr<slots const> store::state::tiers() {
    bool tell = false;
    {
        std::lock_guard const lock{mutex};
        if (bundles_open) return current;
        tell = !std::exchange(told, true) && !options.disk && !options.no_disk_reason.empty();
    }
    if (tell) events->emit({.kind = event_kind::warned, .reason = "memory-only", .detail = options.no_disk_reason});
    auto opened = open_bundles(
        {.paths = options.bundles, .beside_program = options.bundle_beside_program, .trusted_key = options.trusted_key},
        *events);
    slots
        fresh;  // made before the lock and, where they come too late, destroyed after it: they have mutexes of their own
    for (auto const& b : opened.bundles) fresh.push_back(slot_for(b));
    std::lock_guard const lock{mutex};
    if (bundles_open) return current;
    bundles_open = true;
    for (auto* const counts : {&sum, &pending}) {
        for (auto const& one : opened.refused) counts->rejected[one.reason] += 1;
    }
    refused_bundles = std::move(opened.refused);
    bundles = std::move(opened.bundles);
    for (auto const& s : fresh) append(s);
    for (auto const& s : extra) append(s);
    extra.clear();
    return current;
}

bool store::state::is_passed_over(slot const& s) const {
    return options.mode == reuse::recache && s.what->traits().persistent;
}

std::vector<std::shared_ptr<slot>> store::state::far_tiers() {
    std::vector<std::shared_ptr<slot>> out;
    auto const all = open_tiers();
    for (auto const& s : *all) {
        if (s->what->traits().answers_later && !is_passed_over(*s)) out.push_back(s);
    }
    return out;
}

lookup store::state::ask(slot& s, address const& at, expectation const& expected) {
    if (is_passed_over(s)) return {.hit = {}, .why = miss::recache};
    if (s.health.resting()) return {.hit = {}, .why = miss::disabled};
    base::stopwatch const watch;
    auto answer = guarded([&] { return s.what->find(at, expected); });
    if (!answer) {
        note_fault(s, answer.error());
        return {.hit = {}, .why = miss::disabled};
    }
    if (s.health.answered(std::chrono::nanoseconds{watch.ns()})) {
        tally([](statistics& counts) { counts.errors["slow"] += 1; });
        events->emit({.kind = event_kind::fault,
                      .reason = s.what->name(),
                      .detail = fmt::format("slow: {:.0f} ms for one lookup; not asked for a while", watch.ms()),
                      .duration_ns = watch.ns()});
    }
    if (!answer->hit && is_rejection(answer->why)) note_rejection(s, at, expected, answer->why);
    return *std::move(answer);
}

std::vector<summary> store::state::list(slot& s, digest const& family, std::optional<digest> const& request) {
    if (is_passed_over(s) || s.health.resting()) return {};
    auto some = guarded([&] { return s.what->list(family, request); });
    if (some) return *std::move(some);
    note_fault(s, some.error());
    return {};
}

void store::state::copy_nearer(found const& what, flight leading) {
    auto const how = what.by->what->traits().on_hit;
    auto const all = open_tiers();
    for (auto const& s : *all) {
        if (s == what.by) return;
        auto const traits = s->what->traits();
        if (!traits.writable || !reaches(how, traits.where) || !may_hold(traits, what.hit->from)) continue;
        auto lead = traits.where == location::machine ? std::exchange(leading, {}) : flight{};
        if (s->queue) (void)s->queue->enqueue(what.hit, errand::fill, std::move(lead));
        else (void)guarded([&] { return s->what->put(what.hit); });
    }
}

void store::state::note_rejection(slot const& s, address const& at, expectation const& expected, miss why) {
    tally([&](statistics& counts) { counts.rejected[std::string{name_of(why)}] += 1; });
    events->emit({.kind = event_kind::rejected,
                  .target = expected.target,
                  .reason = name_of(why),
                  .detail = s.what->name(),
                  .key = at.key.prefix()});
}

void store::state::note_fault(slot& s, error const& why) {
    if (!says_nothing_of_tier(why)) s.health.faulted();
    auto const reason = why.status() != 0 ? errno_name(why.status()) : std::string{name_of(why.code())};
    tally([&](statistics& counts) { counts.errors[reason] += 1; });
    events->emit({.kind = event_kind::fault, .reason = s.what->name(), .detail = reason_first(why.message())});
}

void store::state::publish(slot& s, entry_ptr const& what, errand why) {
    if (refused.any() && refused.has(what->about.at.key, base::sha256_of(what->payload)))
        return note_put(s, why, put_outcome{.kept = false, .why = "refused"});
    // What the disk could not write it has counted itself.
    auto const done = guarded([&] { return s.what->put(what); });
    if (!done && (s.what != disk || done.error().code() != errc::io)) note_fault(s, done.error());
    note_put(s, why, done);
}

void store::state::note_put(slot& s, errand why, result<put_outcome> const& done) {
    if (why == errand::fill) return;
    if (!done) {
        auto const& e = done.error();
        return note_lost(&s, e.status() != 0 ? errno_name(e.status()) : std::string{name_of(e.code())}, e.message());
    }
    if (!done->kept) return note_lost(&s, done->why, done->detail);
    std::lock_guard const lock{mutex};
    puts.kept += 1;
}

void store::state::note_lost(slot* s, std::string_view reason, std::string_view why) {
    std::lock_guard const lock{mutex};
    puts.lost += 1;
    puts.reasons[std::string{reason}] += 1;
    if (why.empty()) why = reason;
    if (puts.why.empty()) puts.why = why;
    if (s != nullptr && s->lost++ == 0) s->why_lost = why;
}

bool store::state::settle(slot& s, base::time_point deadline, while_written beyond) {
    constexpr std::chrono::milliseconds look{50};
    auto const last = base::clock::now() + beyond.most;
    deadline = std::max(deadline, base::clock::now() + beyond.each);
    auto left = s.queue->waiting();
    while (!s.queue->wait_idle(std::min(deadline, base::clock::now() + look))) {
        auto const now = base::clock::now();
        if (auto const still = s.queue->waiting(); still < left) {
            left = still;
            deadline = std::max(deadline, std::min(last, now + beyond.each));
        }
        if (now >= deadline || !s.what->why_in_vain().empty()) return false;
    }
    return true;
}

kept_report store::state::settle_all(base::time_point deadline, while_written beyond, after that) {
    bool settled = true;
    bool hangs = false;
    auto const all = open_tiers();
    for (auto const& s : *all) {
        bool const is_near = !s->what->traits().answers_later;
        if (!s->queue || settle(*s, deadline, is_near ? beyond : while_written{})) continue;
        settled = false;
        hangs = hangs || is_near;
    }
    auto left = unsent();
    if (that == after::nothing) give_up_waiting();
    // A disk that hangs would hang with the counters too; a server has no part in them.
    if (!hangs) settle_counts(deadline, beyond);
    std::lock_guard const lock{mutex};
    auto out = puts;
    out.settled = settled;
    out.unsent = std::move(left);
    return out;
}

void store::state::give_up_waiting() {
    auto const all = open_tiers();
    for (auto const& s : *all) {
        auto const count = s->queue ? s->queue->waiting() : 0;
        if (count == 0) continue;
        bool const is_far = s->what->traits().answers_later;
        tally([&](statistics& counts) {
            if (is_far) counts.fleet["dropped"] += count;
            else counts.dropped += count;
        });
        auto const why = s->what->why_in_vain();
        events->emit({.kind = event_kind::fault,
                      .reason = s->what->name(),
                      .detail = fmt::format("{} not {} {}: {}", count, is_far ? "sent to" : "kept,", s->what->which(),
                                            why.empty() ? "it did not take them before the program ended" : why),
                      .value = static_cast<std::int64_t>(count)});
    }
}

std::vector<unsent_report> store::state::unsent() {
    std::vector<unsent_report> out;
    auto const all = open_tiers();
    for (auto const& s : *all) {
        if (!s->queue || !s->what->traits().answers_later) continue;
        auto const waiting = s->queue->waiting();
        auto const in_vain = s->what->why_in_vain();
        std::lock_guard const lock{mutex};
        if (s->lost + waiting == 0) continue;
        auto const why = !s->why_lost.empty() ? std::string_view{s->why_lost}
                         : !in_vain.empty()   ? in_vain
                                              : "it did not answer in time";
        out.push_back({.place = s->what->which(), .count = s->lost + waiting, .why = std::string{why}});
    }
    return out;
}

void store::state::gather() {
    auto const all = open_tiers();
    for (auto const& s : *all) {
        auto const more = s->what->take_counts();
        if (!more.empty()) tally([&](statistics& counts) { counts.add(more); });
    }
}

void store::state::add_counts() {
    gather();
    statistics some;
    {
        std::lock_guard const lock{mutex};
        some = std::exchange(pending, {});
        added_at = base::clock::now();
        is_adding_busy = false;
    }
    if (some.empty()) return;
    auto const how = disk ? disk->add_to_directory(some) : adding::nowhere;
    std::lock_guard const lock{mutex};
    is_adding_busy = how == adding::busy;
    if (how != adding::done) pending.add(some);
}

// Always on the disk's own thread: where it hangs, no server waits for it.
void store::state::add_counts_sometimes(bool is_disk) {
    {
        std::lock_guard const lock{mutex};
        if (base::clock::now() < added_at + std::chrono::seconds{1}) return;
    }
    if (is_disk) add_counts();
    else if (disk_slot && disk_slot->queue) (void)disk_slot->queue->poke();
}

// On the background thread, so that a file system that hangs does not make the program hang at its end.
bool store::state::send_counts() {
    gather();
    {
        std::lock_guard const lock{mutex};
        if (pending.empty() || !disk_slot || !disk_slot->queue) return false;
        added_at = {};
    }
    if (disk_slot->queue->poke()) return true;
    add_counts();  // there is no thread to be had
    return false;
}

// Nobody's entries depend on them, so what another holds up is added with the next.
void store::state::settle_counts(base::time_point deadline, while_written beyond) {
    deadline = std::min(deadline, base::clock::now() + std::chrono::milliseconds{250});
    while (send_counts() && settle(*disk_slot, deadline, beyond) && base::clock::now() < deadline) {
        // Nowhere to add them is no reason to wait: only a busy lock is.
        if (std::lock_guard const lock{mutex}; !is_adding_busy) return;
    }
}

void store::state::travel(std::shared_ptr<state> const& self, std::shared_ptr<journey> const& j) {
    if (j->at >= j->stops.size()) {
        far_answer out{.said = j->said};
        out.what.why = most_telling(j->misses);
        out.what.misses = j->misses;
        return j->then(std::move(out));
    }
    auto const s = j->stops[j->at];
    auto one = j->what;
    if (j->at != j->claims_at) one.claims = claiming::no;
    // Weak: a tier that answers when the store is gone answers nobody.
    s->what->ask(one, [weak = std::weak_ptr{self}, j, s](answer a) {
        auto const alive = weak.lock();
        if (alive) arrived(alive, j, s, std::move(a));
    });
}

void store::state::arrived(std::shared_ptr<state> const& self, std::shared_ptr<journey> const& j,
                           std::shared_ptr<slot> const& s, answer a) {
    auto const traits = s->what->traits();
    far_answer out{.mine = std::move(a.mine), .late = a.late, .is_last = a.is_last};
    if (!a.is_last) {
        if (!std::exchange(j->told_late, true)) j->then(std::move(out));
        return;
    }
    if (a.hit) {
        out.what = {.hit = std::move(a.hit),
                    .tier = s->what->name(),
                    .where = traits.where,
                    .misses = {},
                    .by = s,
                    .ns = j->watch.ns()};
        out.next = j->what.nth + 1;
        return j->then(std::move(out));
    }
    if (is_rejection(a.why))
        self->note_rejection(*s, {j->what.family, j->what.request.value_or(digest{}), j->what.key.value_or(digest{})},
                             j->what.expected, a.why);
    j->misses.push_back({.tier = s->what->name(), .why = a.why});
    j->said += fmt::format("{}{}: {}{}{}", j->said.empty() ? "" : "; ", s->what->which(), name_of(a.why),
                           a.detail.empty() ? "" : ": ", a.detail);
    if (j->at == j->claims_at) {
        out.what.why = most_telling(j->misses);
        out.what.misses = j->misses;
        out.said = j->said;
        return j->then(std::move(out));
    }
    ++j->at;
    travel(self, j);
}

}  // namespace kiln::store
