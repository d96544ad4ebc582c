// SPDX-License-Identifier: Apache-2.0
// Why this is or is not a hit: field by field against the nearest thing that was kept.
#include "engine/engine_state.hpp"
#include "store/maintenance.hpp"
#include "unit_arguments.hpp"

#include <algorithm>
#include <map>

namespace kiln::cli {

namespace {

struct difference {
    std::string field;
    std::string asked;
    std::string kept;
};

struct nearest {
    artifact what;
    std::string tier;
    std::vector<difference> differences;
};

void compare_inputs(std::vector<input_field> const& asked, std::vector<input_field> const& kept,
                    std::vector<difference>& out) {
    std::map<std::string, std::pair<std::string, std::string>> fields;
    for (auto const& f : asked) fields[f.name].first = f.value;
    for (auto const& f : kept) fields[f.name].second = f.value;
    for (auto const& [name, values] : fields) {
        if (values.first != values.second)
            out.push_back(
                {name, values.first.empty() ? "-" : values.first, values.second.empty() ? "-" : values.second});
    }
}

std::vector<difference> compare(engine_detail::order const& asked, artifact const& kept) {
    std::vector<difference> out;
    auto const& job = std::get<compile::compile_job>(asked.job.task);
    if (kept.target.arch != job.target.arch) out.push_back({"target", job.target.arch.name(), kept.target.arch.name()});
    if (kept.target.kind != job.target.kind)
        out.push_back({"kind", std::string{name_of(job.target.kind)}, std::string{name_of(kept.target.kind)}});
    if (kept.toolchain != asked.subject.toolchain)
        out.push_back({"compiler", asked.subject.toolchain.empty() ? "none on this machine" : asked.subject.toolchain,
                       kept.toolchain});
    if (auto const options = compile::normalize(job.unit.options))
        compare_inputs(compile::describe_inputs(job.unit, *options), kept.inputs, out);
    auto const change =
        compile::first_change(kept.dependencies, asked.subject.roots, compile::absent_headers::are_misses);
    if (!change.empty()) out.push_back({"headers", change, "as they were"});
    return out;
}

// Everything kept under this name or family, wherever it is.
std::vector<nearest> candidates(engine::state& s, engine_detail::order const& asked) {
    std::vector<std::pair<store::address, std::string>> places;
    for (auto const& l : s.store->list(asked.subject.id.family))
        places.emplace_back(l.what.about.at, std::string{l.tier});
    if (s.store->options().disk) {
        store::maintenance cache{s.store->options().disk->root};
        if (auto const all = cache.list()) {
            for (auto const& c : *all) {
                if (c.what.about.name == asked.subject.name) places.emplace_back(c.what.about.at, "disk");
            }
        }
    }
    for (auto const& bundle : s.store->bundles()) {
        (void)bundle->for_each([&](store::summary const& e) {
            if (e.about.name == asked.subject.name) places.emplace_back(e.about.at, "bundle");
        });
    }
    std::vector<nearest> out;
    for (auto const& [at, tier] : places) {
        auto const found = s.store->peek(at, {});
        if (!found) continue;
        if (auto a = compile::decode_artifact(found.hit->payload)) {
            auto differences = compare(asked, *a);
            out.push_back({*std::move(a), tier, std::move(differences)});
        }
    }
    std::ranges::stable_sort(out, {}, [](nearest const& n) { return n.differences.size(); });
    return out;
}

json json_of(std::string const& verdict, engine_detail::order const& asked, engine_detail::found_artifact const& found,
             nearest const* near) {
    json out{{"verdict", verdict},
             {"unit", asked.subject.name},
             {"target", asked.subject.target.arch.name()},
             {"kind", name_of(asked.subject.target.kind)},
             {"family", asked.subject.id.family.hex()},
             {"request", asked.subject.id.request.hex()},
             {"reason", found.reason},
             {"detail", found.detail}};
    if (near != nullptr) {
        json differences = json::array();
        for (auto const& d : near->differences)
            differences.push_back({{"field", d.field}, {"asked", d.asked}, {"kept", d.kept}});
        out["nearest"] = {{"unit", near->what.unit},
                          {"target", near->what.target.arch.name()},
                          {"tier", near->tier},
                          {"key", near->what.key},
                          {"differences", std::move(differences)}};
    }
    return out;
}

void explain_one(engine::state& s, unit const& u, target t, bool as_json, json& all) {
    auto const asked = s.order_for(u, t).value();
    auto const found = engine_detail::look_up(*s.store, asked.subject, engine_detail::purpose::explain);
    auto const near = found.what ? std::vector<nearest>{} : candidates(s, asked);
    auto const verdict = found.what ? std::string{"hit"} : std::string{"miss"};
    if (as_json) {
        all.push_back(json_of(verdict, asked, found, near.empty() ? nullptr : &near.front()));
        return;
    }
    auto const head = fmt::format("{} for {} {}", u.name, t.arch.name(), name_of(t.kind));
    if (found.what) {
        print(fmt::format("{}: hit in {}, key {}{}{}\n", head, name_of(found.from), found.what->key.substr(0, 16),
                          found.detail.empty() ? "" : "; ", found.detail));
        return;
    }
    print(fmt::format("{}: miss ({}{}{})\n", head, found.reason, found.detail.empty() ? "" : ": ", found.detail));
    if (near.empty()) {
        print(fmt::format("  nothing of this name or family is kept; asked: {}\n",
                          engine_detail::describe_tiers(*s.store)));
        return;
    }
    auto const& n = near.front();
    print(fmt::format("  nearest: {} {} in {}, key {}\n", n.what.target.arch.name(), name_of(n.what.target.kind),
                      n.tier, n.what.key.substr(0, 16)));
    std::vector<std::vector<std::string>> rows{{"  field", "asked", "kept"}};
    for (auto const& d : n.differences) rows.push_back({"  " + d.field, d.asked.substr(0, 60), d.kept.substr(0, 60)});
    if (n.differences.empty())
        print("  no field differs: the entry appeared since, or was rejected; see 'kiln cache verify'\n");
    else print(table(rows));
}

}  // namespace

void add_explain(CLI::App& root, std::vector<command>& commands) {
    struct explain_arguments {
        unit_arguments what;
        bool as_json = false;
    };
    auto arguments = std::make_shared<explain_arguments>();
    auto* const app = add_command(root, "explain");
    arguments->what.add_to(*app);
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] {
                            auto const units = arguments->what.units().value();
                            auto const targets = arguments->what.targets().value();
                            engine e{arguments->what.engine()};
                            json all = json::array();
                            for (auto const& u : units) {
                                for (auto const& t : targets) explain_one(e.internals(), u, t, arguments->as_json, all);
                            }
                            if (arguments->as_json) print_json(all);
                            return ok;
                        }});
}

}  // namespace kiln::cli
