// SPDX-License-Identifier: Apache-2.0
#include "declared.hpp"
#include "keeping.hpp"
#include "making.hpp"
#include "misuse.hpp"
#include "named_toolkit.hpp"
#include "unit_arguments.hpp"

#include <kiln/status.hpp>

namespace kiln::cli {

namespace {

struct warm_arguments {
    unit_arguments what;
    std::vector<std::string> specs;
    std::vector<std::string> packs;
    std::vector<std::string> operations;
    bool show_operations = false;
    bool as_json = false;
};

int show_operations(bool as_json) {
    json all = json::array();
    std::vector<std::vector<std::string>> rows{{"operation", "pack", "specs", "names"}};
    for (auto const& d : declarations()) {
        std::string joined;
        for (auto const& n : d.names) joined += (joined.empty() ? "" : " ") + n;
        rows.push_back({d.operation, d.pack, std::to_string(d.names.size()), joined});
        all.push_back({{"operation", d.operation},
                       {"pack", d.pack},
                       {"when", d.when},
                       {"count", d.names.size()},
                       {"specs", d.names}});
    }
    if (as_json) print_json(all);
    else print(table(rows));
    return ok;
}

result<std::vector<engine_detail::recipe>> chosen(warm_arguments const& a) {
    std::vector<engine_detail::recipe> out;
    auto const add = [&](std::vector<engine_detail::recipe> more) {
        for (auto& r : more) {
            if (std::ranges::find(out, r) == out.end()) out.push_back(std::move(r));
        }
    };
    KILN_TRY(auto const units, a.what.units());
    for (auto const& u : units) {
        // Not normalised: what ".." leads to behind a link is for the system to say.
        auto copy = u;
        copy.directory = std::filesystem::absolute(copy.directory).native();
        for (auto& d : copy.include_dirs) d = std::filesystem::absolute(d).native();
        add({engine_detail::recipe_of(copy)});
    }
    KILN_TRY(auto named, recipes_named(a.specs));
    add(std::move(named));
    for (auto const& p : a.packs) {
        KILN_TRY(auto more, recipes_of_pack(p));
        add(std::move(more));
    }
    for (auto const& o : a.operations) {
        bool known = false;
        for (auto const& d : declarations()) {
            if (d.operation != o) continue;
            known = true;
            KILN_TRY(auto more, recipes_named(d.names));
            add(std::move(more));
        }
        if (!known)
            return fail(errc::invalid_argument, "nobody declared '{}'; 'kiln warm --operations' shows who did", o);
    }
    if (a.what.files.empty() && a.specs.empty() && a.packs.empty() && a.operations.empty())
        add(recipes_of_everything());
    return out;
}

int run(warm_arguments const& a) {
    if (a.show_operations) return show_operations(a.as_json);
    auto const recipes = meant(chosen(a));
    std::vector<thing> things;
    for (auto const& t : meant(a.what.targets())) {
        for (auto const& r : recipes) things.push_back({.by = r, .for_target = t});
    }
    engine e{a.what.engine()};
    insist_on_toolkit(e);
    base::stopwatch const watch;
    auto const bad = make_all(e, things, "warm");
    auto const ms = watch.ms();
    complain_about(things);
    keeping made;
    for (auto const& t : things) {
        if (*t.answer && t.from == provenance::compiled) made.expect((*t.answer)->at, *(*t.answer)->got.what);
    }
    auto const lost = made.complain_of_lost(e, keeping::chosen::told);
    auto const s = status(e);
    if (a.as_json) {
        json list = json::array();
        for (auto const& t : things) list.push_back(describe(t));
        print_json(json{{"ready", things.size() - bad},
                        {"failed", bad},
                        {"lost", lost},
                        {"compiled", s.compiled},
                        {"wall_ms", ms},
                        {"things", std::move(list)}});
    } else {
        print(table_of(things));
        print(fmt::format("{} of {} ready in {:.0f} ms, {} compiled now{}\n", things.size() - bad, things.size(), ms,
                          s.compiled, lost == 0 ? "" : fmt::format(", {} not kept", lost)));
    }
    return bad + lost == 0 ? ok : failed;
}

}  // namespace

void add_warm(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<warm_arguments>();
    auto* const app = add_command(root, "warm");
    arguments->what.add_to(*app, unit_arguments::files_are::optional);
    app->add_option("--spec", arguments->specs, "specialisations")->delimiter(',');
    app->add_option("--pack", arguments->packs, "packs")->delimiter(',');
    app->add_option("--operation", arguments->operations, "operations that declared what they need")->delimiter(',');
    app->add_flag("--operations", arguments->show_operations, "show what is declared");
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
