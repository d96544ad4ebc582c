// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "warmup/profile_file.hpp"

namespace kiln::cli {

namespace {

using warmup::profile;

struct profile_arguments {
    std::vector<std::string> files;
    std::string output;
    bool as_json = false;
};

json describe(profile const& p, warmup::profile_use const& u) {
    auto const& r = p.recipes.at(u.recipe);
    return {{"name", r.name},
            {"kind", r.kind},
            {"recipe", u.recipe.hex()},
            {"target", u.arch},
            {"artifact", u.kind},
            {"first_use_ms", static_cast<double>(u.ns) * 1e-6},
            {"compile_ms", u.compile_ms},
            {"waited_ms", u.waited_ms},
            {"from", u.from},
            {"key", u.key}};
}

int show(profile_arguments const& a) {
    auto const p = warmup::read_profile(a.files.front()).value();
    if (a.as_json) {
        json uses = json::array(), processes = json::array();
        for (auto const& u : p.uses) uses.push_back(describe(p, u));
        for (auto const& one : p.processes)
            processes.push_back({{"version", one.version},
                                 {"program", one.program},
                                 {"pid", one.pid},
                                 {"unix_seconds", one.unix_seconds}});
        print_json(json{{"recipes", p.recipes.size()},
                        {"torn_bytes", p.torn_bytes},
                        {"unknown_records", p.unknown_records},
                        {"processes", std::move(processes)},
                        {"uses", std::move(uses)}});
        return ok;
    }
    std::vector<std::vector<std::string>> rows{
        {"first use ms", "name", "kind", "target", "from", "waited ms", "compile ms"}};
    double cost = 0;
    for (auto const& u : p.uses) {
        auto const& r = p.recipes.at(u.recipe);
        rows.push_back({fmt::format("{:.1f}", static_cast<double>(u.ns) * 1e-6), r.name, r.kind, u.arch, u.from,
                        fmt::format("{:.1f}", u.waited_ms), fmt::format("{:.0f}", u.compile_ms)});
        cost += u.compile_ms;
    }
    print(table(rows));
    print(fmt::format("{}, {} of {}, {:.0f} ms of compiling{}\n", count_of(p.recipes.size(), "recipe"),
                      count_of(p.uses.size(), "use"), count_of(p.processes.size(), "process", "processes"), cost,
                      p.torn_bytes > 0 ? fmt::format("; cut off, {} bytes left out", p.torn_bytes) : ""));
    return ok;
}

int merge(profile_arguments const& a) {
    if (a.output == "-" && a.as_json) {
        complain("-o - and --json both want standard output");
        return misused;
    }
    check_text_output(a.output).value();
    profile all;
    std::size_t bad = 0;
    for (auto const& f : a.files) {
        auto one = warmup::read_profile(f);
        if (one) all.merge(*one);
        else complain(one.error()), ++bad;
    }
    if (bad == a.files.size()) return failed;
    write_text_output(a.output, warmup::encode(all)).value();
    json const summary{{"files", a.files.size() - bad},
                       {"unreadable", bad},
                       {"recipes", all.recipes.size()},
                       {"uses", all.uses.size()},
                       {"torn_bytes", all.torn_bytes}};
    if (a.as_json) print_json(summary);
    else if (a.output != "-")
        print(fmt::format("{}: {}, {} of {}\n", a.output, count_of(all.recipes.size(), "recipe"),
                          count_of(all.uses.size(), "use"), count_of(a.files.size() - bad, "file")));
    return bad == 0 ? ok : failed;
}

int diff(profile_arguments const& a) {
    if (a.files.size() != 2) {
        complain("diff takes two profiles");
        return misused;
    }
    auto const left = warmup::read_profile(a.files[0]).value();
    auto const right = warmup::read_profile(a.files[1]).value();
    json out = json::array();
    std::string text;
    auto const missing = [&](profile const& from, profile const& in, std::string_view sign, std::string_view word) {
        for (auto const& u : from.uses) {
            if (in.has(u.recipe, u.arch, u.kind)) continue;
            auto const& name = from.recipes.at(u.recipe).name;
            out.push_back({{"change", word}, {"name", name}, {"target", u.arch}, {"recipe", u.recipe.hex()}});
            text += fmt::format("{} {} {}\n", sign, name, u.arch);
        }
    };
    missing(left, right, "-", "removed");
    missing(right, left, "+", "added");
    if (a.as_json) print_json(out);
    else print(text);
    return out.empty() ? ok : failed;
}

}  // namespace

void add_profile(CLI::App& root, std::vector<command>& commands) {
    auto* const app = add_command(root, "profile");
    app->require_subcommand(1);
    auto const add = [&](char const* name, int (*run)(profile_arguments const&)) {
        auto arguments = std::make_shared<profile_arguments>();
        auto* const sub = add_command(*app, name, "profile");
        sub->add_option("PROFILE", arguments->files, "profiles")->required();
        sub->add_flag("--json", arguments->as_json, "JSON on stdout");
        if (run == merge) sub->add_option("-o,--output", arguments->output, "profile to write")->required();
        commands.push_back({sub, [arguments, run] { return run(*arguments); }});
    };
    add("show", show);
    add("merge", merge);
    add("diff", diff);
}

}  // namespace kiln::cli
