// SPDX-License-Identifier: Apache-2.0
// Why this is or is not a hit: field by field against the nearest thing that was kept.
#include "engine/engine_state.hpp"
#include "engine/nearest.hpp"
#include "misuse.hpp"
#include "store/ask_sync.hpp"
#include "unit_arguments.hpp"

namespace kiln::cli {

namespace {

using engine_detail::near_miss;

struct searched {
    engine_detail::found_artifact found;
    std::string afar;  // what servers said; empty: none was asked, or one has it
};

// For all answers of servers together: beyond what one that is not there takes by itself.
constexpr std::chrono::minutes longest_wait{1};

// As a program would, but for the waiting: who wants to know why has the time for every answer. Nothing is claimed and nothing copied.
searched look_everywhere(store::store& where, engine_detail::subject const& what, base::time_point deadline) {
    searched out{.found = engine_detail::look_up(where, what, engine_detail::purpose::explain), .afar = {}};
    if (out.found.what || !where.has_far()) return out;
    store::question question{
        .family = what.id.family,
        .expected = {what.target.arch.name(), std::string{name_of(what.target.kind)}, what.toolchain},
        .how = store::urgency::nothing_else_will_do};
    if (!what.toolchain.empty()) question.request = what.id.request;
    // One for each set of headers it was made from.
    for (;;) {
        auto const answer = store::ask_sync(where, question, deadline);
        if (!answer.what.hit) {
            if (out.afar.empty()) out.afar = answer.said;
            return out;
        }
        out.found = engine_detail::accept(where, what, answer.what);
        if (out.found.what) {
            out.afar.clear();
            return out;
        }
        out.afar = out.found.reason;
        if (out.found.reason != "header-changed") return out;
        question.nth = answer.next;
    }
}

json json_of(std::string const& verdict, engine_detail::order const& asked, searched const& all,
             near_miss const* near) {
    auto const& found = all.found;
    json out{{"verdict", verdict},
             {"unit", asked.subject.name},
             {"target", asked.subject.target.arch.name()},
             {"kind", name_of(asked.subject.target.kind)},
             {"family", asked.subject.id.family.hex()},
             {"request", asked.subject.id.request.hex()},
             {"from", found.what ? json(name_of(found.from)) : json(nullptr)},
             {"fleet", all.afar.empty() ? json(nullptr) : json(all.afar)},
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

// What all units of one command share.
struct explaining {
    engine::state& by;
    base::time_point deadline = base::clock::now() + longest_wait;
    std::optional<json> all{};  // nullopt: in words
};

void explain_one(explaining& e, unit const& u, target t) {
    auto& s = e.by;
    auto const asked = s.order_for(u, t).value();
    auto const all_of_it = look_everywhere(*s.store, asked.subject, e.deadline);
    auto const& found = all_of_it.found;
    auto const& disk = s.store->options().disk;
    auto const cache = disk ? std::optional{disk->root} : std::nullopt;
    auto const near = found.what ? std::vector<near_miss>{} : near_misses(*s.store, asked, cache);
    auto const verdict = found.what ? std::string{"hit"} : std::string{"miss"};
    if (e.all) {
        e.all->push_back(json_of(verdict, asked, all_of_it, near.empty() ? nullptr : &near.front()));
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
        print(fmt::format("  nothing of this name or family is kept; asked: {}{}\n",
                          engine_detail::describe_tiers(*s.store),
                          all_of_it.afar.empty() ? "" : fmt::format(", fleet ({})", all_of_it.afar)));
        return;
    }
    if (!all_of_it.afar.empty()) print(fmt::format("  fleet: {}\n", all_of_it.afar));
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
                            auto const targets = meant(arguments->what.targets());
                            engine e{arguments->what.engine()};
                            explaining all{.by = e.internals()};
                            if (arguments->as_json) all.all = json::array();
                            for (auto const& u : units) {
                                for (auto const& t : targets) explain_one(all, u, t);
                            }
                            if (all.all) print_json(*all.all);
                            return ok;
                        }});
}

}  // namespace kiln::cli
