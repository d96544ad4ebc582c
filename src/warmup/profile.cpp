// SPDX-License-Identifier: Apache-2.0
#include <kiln/profile.hpp>

#include "warmup/director.hpp"
#include "warmup/process_profile.hpp"
#include "warmup/profile_file.hpp"
#include "warmup/recorder.hpp"

#include <set>

namespace kiln {

namespace {

using warmup::director;
using warmup::profile;

// In order of first use, once per recipe: the target is this machine's, not the recording's.
replayed demand_all(profile const& from, demand_options how, director& by) {
    replayed out{.torn_bytes = from.torn_bytes};
    std::vector<want> what;
    std::set<base::digest> done;
    auto const costs = from.costs_ms();
    for (auto const& u : from.uses) {
        if (!done.insert(u.recipe).second) continue;
        auto const& r = from.recipes.at(u.recipe);
        by.progress().expect(r.name, costs.at(u.recipe));
        if (r.kind == "unit") {
            auto made = engine_detail::unit_of(r);
            if (made) what.emplace_back(*std::move(made));
            else ++out.stale;
        } else if (auto const* const p = engine_detail::find_pack(r.kind); p == nullptr) ++out.stale;
        else if (r.body.empty() && !p->find(r.name)) ++out.stale;
        else what.push_back(want::from_recipe(std::make_shared<engine_detail::recipe const>(r)));
    }
    out.demanded = what.size();
    if (!what.empty()) demand(std::move(what), std::move(how));
    return out;
}

void note(event_log& events, std::string_view file, replayed const& r) {
    events.emit(
        {.kind = event_kind::note,
         .reason = "profile",
         .detail = fmt::format("{}: {} demanded, {} stale, {} torn bytes", file, r.demanded, r.stale, r.torn_bytes),
         .value = static_cast<std::int64_t>(r.demanded)});
}

}  // namespace

recording record_profile(std::string const& file, engine& of) {
    auto const by = std::make_shared<warmup::recorder>(file, of.internals().events);
    of.internals().uses.add(by);
    return recording{[by, &of] { of.internals().uses.remove(by.get()); }, [by] { return by->written(); }};
}

result<void> write_profile(std::string const& file, std::vector<want> const& what) {
    profile out;
    for (auto const& w : what) {
        engine_detail::recipe r;
        if (w.as_recipe()) r = *w.as_recipe();
        else if (w.as_unit()) r = engine_detail::recipe_of(*w.as_unit());
        else {
            KILN_TRY(r, engine_detail::find_recipe(w.name()));
        }
        auto const id = r.id();
        if (!out.recipes.emplace(id, std::move(r)).second) continue;
        out.uses.push_back({.recipe = id, .arch = "sm_90", .kind = "cubin", .key = {}, .from = {}});
    }
    return warmup::write_profile(file, out);
}

result<replayed> replay_profile(std::string const& file, demand_options how) {
    auto& e = warmup::engine_of(how);
    if (warmup::recordings_of(file).empty()) return fail(errc::not_found, "{}: no such profile", file);
    KILN_TRY(auto const all, warmup::read_recordings(file));
    auto const by = director::of(e);
    if (!by) return fail(errc::cancelled, "the engine is shutting down");
    if (how.how == priority::declared) how.how = priority::predicted;
    if (how.consumer.empty()) how.consumer = "profile";
    auto const out = demand_all(all, std::move(how), *by);
    note(e.internals().events, file, out);
    return out;
}

namespace warmup {

void start_process_profile(std::string const& file) {
    auto& e = engine::process();
    auto& s = e.internals();
    auto const recording = std::make_shared<recorder>(file, s.events);
    s.uses.add(recording);
    auto const by = director::of(e);
    if (!by) return;
    by->first([file, recording, &e, weak = std::weak_ptr{by}] {
        auto const& all = recording->before();
        auto const self = weak.lock();
        if (!self) return;
        if (!all) {
            e.internals().events.emit(
                {.kind = event_kind::warned, .reason = "profile", .detail = all.error().message()});
            return;
        }
        note(e.internals().events, file, demand_all(*all, {.how = priority::predicted, .consumer = "profile"}, *self));
    });
}

}  // namespace warmup

}  // namespace kiln
