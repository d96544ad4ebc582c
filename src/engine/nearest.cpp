// SPDX-License-Identifier: Apache-2.0
#include "engine/nearest.hpp"

#include "store/maintenance.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace kiln::engine_detail {

namespace {

void compare_inputs(std::vector<input_field> const& asked, std::vector<input_field> const& kept,
                    std::vector<difference>& out) {
    std::map<std::string, std::pair<std::string, std::string>> fields;
    for (auto const& f : asked) fields[f.name].first = f.value;
    for (auto const& f : kept) fields[f.name].second = f.value;
    for (auto const& [name, values] : fields) {
        auto const& [now, then] = values;
        if (now != then) out.push_back({name, now.empty() ? "-" : now, then.empty() ? "-" : then});
    }
}

std::vector<difference> compare(order const& asked, artifact const& kept, compile::absent_headers how) {
    std::vector<difference> out;
    auto const& t = asked.subject.target;
    if (kept.target.arch != t.arch) out.push_back({"target", t.arch.name(), kept.target.arch.name()});
    if (kept.target.kind != t.kind)
        out.push_back({"kind", std::string{name_of(t.kind)}, std::string{name_of(kept.target.kind)}});
    if (kept.toolchain != asked.subject.toolchain)
        out.push_back({"compiler", asked.subject.toolchain.empty() ? "none on this machine" : asked.subject.toolchain,
                       kept.toolchain});
    auto const* const job = std::get_if<compile::compile_job>(&asked.job.task);
    // A unit that is its images has nothing else that could differ.
    if (job == nullptr || !asked.has_text()) return out;
    if (auto const options = compile::normalize(job->unit.options))
        compare_inputs(compile::describe_inputs(job->unit, *options), kept.inputs, out);
    auto change = compile::first_change(kept.dependencies, asked.subject.roots, how);
    if (!change.empty()) out.push_back({"headers", std::move(change), "as they were"});
    return out;
}

// Another generation is further than any model of this one; what is older may run here, what is newer never does.
int distance(kiln::arch const& asked, kiln::arch const& kept) {
    int const apart = kept.number() - asked.number();
    int const generations = kept.number() / 10 - asked.number() / 10;
    return 1000 * std::abs(generations) + 2 * std::abs(apart) + (apart > 0 ? 1 : 0);
}

bool is_of_target(difference const& d) { return d.field == "target" || d.field == "kind"; }

std::size_t other_differences(near_miss const& n) {
    return static_cast<std::size_t>(
        std::ranges::count_if(n.differences, [](auto const& d) { return !is_of_target(d); }));
}

}  // namespace

std::vector<near_miss> near_misses(store::store& where, order const& asked,
                                   std::optional<std::filesystem::path> const& cache) {
    std::vector<std::pair<store::address, std::string>> places;
    for (auto const& l : where.list(asked.subject.id.family)) places.emplace_back(l.what.about.at, std::string{l.tier});
    auto const add_named = [&](store::label const& about, char const* tier) {
        bool const is_other = !asked.has_text() && about.at.family != asked.subject.id.family;
        if (about.name == asked.subject.name && !is_other) places.emplace_back(about.at, tier);
    };
    if (cache) {
        if (auto const all = store::maintenance{*cache}.list()) {
            for (auto const& c : *all) add_named(c.what.about, "disk");
        }
    }
    for (auto const& bundle : where.bundles())
        (void)bundle->for_each([&](store::summary const& e) { add_named(e.about, "bundle"); });

    // The last place is the lasting one: what was looked at once is in memory as well.
    std::map<base::digest, std::pair<store::address, std::string>> once;
    for (auto& place : places) once.insert_or_assign(place.first.key, std::move(place));
    std::vector<near_miss> out;
    for (auto const& [key, place] : once) {
        auto const found = where.peek(place.first, {});
        if (!found) continue;
        if (auto a = compile::decode_artifact(found.hit->payload)) {
            auto differences = compare(asked, *a, rule_for(found.hit->from));
            out.push_back({*std::move(a), place.second, std::move(differences)});
        }
    }
    auto const by = [&](near_miss const& n) {
        return std::tuple{other_differences(n), n.what.target.kind != asked.subject.target.kind,
                          distance(asked.subject.target.arch, n.what.target.arch)};
    };
    std::ranges::stable_sort(out, {}, by);
    return out;
}

std::string describe_nearest(store::store& where, order const& asked) {
    auto const near = near_misses(where, asked);
    if (near.empty()) return "nothing of this unit";
    auto const& best = near.front();
    auto out = fmt::format("{} {} ({}, in {})", best.what.target.arch.name(), name_of(best.what.target.kind),
                           best.what.toolchain.substr(0, 20), best.tier);
    bool const same_target = best.what.target == asked.subject.target;
    for (auto const& d : best.differences) {
        // By another compiler is no reason where the target is another anyhow: bundles serve whatever compiler is here.
        if (is_of_target(d) || (d.field == "compiler" && !same_target)) continue;
        // Long values are digests: that they differ is all they say.
        if (d.field == "headers") out += fmt::format("; {}", d.asked);
        else if (d.asked.size() + d.kept.size() > 100) out += fmt::format("; another {}", d.field);
        else out += fmt::format("; {}: '{}' is asked, '{}' is kept", d.field, d.asked, d.kept);
    }
    std::set<std::pair<int, std::string>> held;
    for (auto const& n : near) {
        if (other_differences(n) == other_differences(best) && n.what.target.kind == best.what.target.kind)
            held.emplace(n.what.target.arch.number(), n.what.target.arch.name());
    }
    if (held.size() < 2) return out;
    std::vector<std::string> names;
    for (auto const& [number, name] : held) names.push_back(name);
    return out + fmt::format("; held for {}", fmt::join(names, ", "));
}

}  // namespace kiln::engine_detail
