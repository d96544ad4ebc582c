// SPDX-License-Identifier: Apache-2.0
// What a newcomer should see first: what ships, found; what is new, compiled once; and all of it found the second time.
#include "keeping.hpp"
#include "making.hpp"

#include "base/files.hpp"
#include "workshop/pack_tool.hpp"

#include "embedded/demo_units.hpp"

#include <kiln/status.hpp>

#include <algorithm>

namespace kiln::cli {

namespace {

using engine_detail::recipe;

// Which rows of the table there are, in their order.
struct demo_item {
    std::string group;
    recipe by;
};

enum class scope { examples, usual, everything };

void add_example_units(std::vector<demo_item>& to) {
    for (auto const& file : embedded::demo_units()) {
        unit u;
        u.name = std::string{file.name.substr(0, file.name.rfind('.'))};
        u.source = std::string{file.data};
        to.push_back({"example units", engine_detail::recipe_of(u)});
    }
}

// Answers for what ships, and for nothing else.
bool ships(engine& without_compiler, engine_detail::pack const& pack, recipe const& r, target t) {
    return pack.make(without_compiler, r, t, {}).has_value();
}

std::vector<demo_item> items_of(scope which, target t, std::string const& scratch) {
    std::vector<demo_item> out;
    add_example_units(out);
    if (which == scope::examples) return out;
    engine without_compiler{
        {.settings = {
             {"KILN_CACHE_DIR", scratch}, {"KILN_JIT", "forbid"}, {"KILN_BUNDLES", ""}, {"KILN_RECACHE", ""}}}};
    auto const packs = engine_detail::packs();
    for (auto const* p : packs) {
        auto const& tool = workshop::tool_of(*p);
        // Of what does not ship a few are enough to see the point; compiling all takes minutes.
        auto const usual = tool.worth_compiling(*p);
        for (auto& r : p->recipes()) {
            if (which == scope::everything || std::ranges::find(usual, r) != usual.end() ||
                ships(without_compiler, *p, r, t))
                out.push_back({tool.title(*p), std::move(r)});
        }
    }
    for (auto const* p : packs) {
        for (auto& group : workshop::tool_of(*p).unseen()) {
            for (auto& r : group.recipes) out.push_back({group.title, std::move(r)});
        }
    }
    return out;
}

struct pass {
    std::vector<thing> things;
    std::size_t failed = 0;
    std::uint64_t compiled = 0;
    double wall_ms = 0;
};

enum class from_scratch { yes, no };

// Each pass is a fresh engine: what the second finds, it finds as the next process would. From scratch: compiled even if
// it ships.
pass make_ready(std::vector<demo_item> const& all, target t, std::string const& cache, from_scratch how,
                std::string const& title) {
    engine e{{.settings = {{"KILN_CACHE_DIR", cache},
                           {"KILN_DISABLE", ""},
                           {"KILN_READONLY", ""},
                           {"KILN_BUNDLES", ""},
                           {"KILN_RECACHE", how == from_scratch::yes ? "1" : ""},
                           {"KILN_JIT", "allow"}}}};
    pass out;
    for (auto const& i : all) out.things.push_back({.by = i.by, .for_target = t});
    out.failed = make_all(e, out.things, title);
    auto const s = status(e);
    out.wall_ms = s.wall_ms;
    out.compiled = s.compiled;
    write_all(e);
    return out;
}

// How many came from where: compiled, the cache, what ships; from memory what is another name for the same unit.
struct origins {
    std::size_t compiled = 0, disk = 0, bundle = 0, memory = 0, failed = 0;

    void count(thing const& t) {
        if (!*t.answer) ++failed;
        else if (t.from == provenance::compiled) ++compiled;
        else if (t.from == provenance::bundle) ++bundle;
        else if (t.from == provenance::memory) ++memory;
        else ++disk;
    }
    [[nodiscard]] std::string text() const {
        std::string out;
        auto const add = [&](std::size_t count, std::string_view what) {
            if (count > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, what);
        };
        add(bundle, "bundle");
        add(disk, "disk");
        add(memory, "memory");
        add(compiled, "compiled");
        add(failed, "failed");
        return out;
    }
    [[nodiscard]] json as_json() const {
        return {{"bundle", bundle}, {"disk", disk}, {"memory", memory}, {"compiled", compiled}, {"failed", failed}};
    }
};

struct row {
    std::string name;
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    double compile_ms = 0;
    origins cold = {};
    origins warm = {};

    void add(thing const& first, thing const& second) {
        ++count;
        if (*first.answer) bytes += (*first.answer)->got.what->image.size();
        if (first.from == provenance::compiled) compile_ms += first.compile_ms;
        cold.count(first);
        warm.count(second);
    }
    [[nodiscard]] std::vector<std::string> cells() const {
        return {name,
                std::to_string(count),
                bytes_text(bytes),
                cold.text(),
                compile_ms > 0 ? fmt::format("{:.1f} s", compile_ms * 1e-3) : "-",
                warm.text()};
    }
};

std::string table_of(std::vector<demo_item> const& all, pass const& cold, pass const& warm) {
    std::vector<row> groups;
    row sum{.name = "all"};
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto at = std::ranges::find(groups, all[i].group, &row::name);
        if (at == groups.end()) at = groups.insert(groups.end(), {.name = all[i].group});
        at->add(cold.things[i], warm.things[i]);
        sum.add(cold.things[i], warm.things[i]);
    }
    std::vector<std::vector<std::string>> out{{"", "count", "size", "cold from", "compile time", "warm from"}};
    for (auto const& g : groups) out.push_back(g.cells());
    out.push_back(sum.cells());
    return table(out);
}

json to_json(pass const& p) {
    json list = json::array();
    origins from;
    for (auto const& t : p.things) {
        list.push_back(describe(t));
        from.count(t);
    }
    return {{"wall_ms", p.wall_ms},
            {"compiled", p.compiled},
            {"failed", p.failed},
            {"from", from.as_json()},
            {"things", std::move(list)}};
}

struct demo_arguments {
    bool quick = false;
    bool all = false;
    bool as_json = false;
};

int run(demo_arguments const& a) {
    auto const here = arch_of_this_machine();
    auto const t = target::make(here.arch, artifact_kind::cubin).value();
    auto const scratch = base::temporary_directory::make("kiln-demo").value();
    auto const cache = (scratch.path() / "cache").native();
    auto const all = items_of(a.quick ? scope::examples
                              : a.all ? scope::everything
                                      : scope::usual,
                              t, (scratch.path() / "none").native());
    if (!a.as_json)
        print(fmt::format("Kiln: {} units and specialisations for {}\n", all.size(),
                          here.found ? fmt::format("{} ({})", here.device, t.arch.name())
                                     : fmt::format("{} (no GPU here; compiling needs none)", t.arch.name())));
    finish_output();
    auto const first = a.all ? from_scratch::yes : from_scratch::no;
    auto const cold = make_ready(all, t, cache, first, "cold");
    auto const warm = make_ready(all, t, cache, from_scratch::no, "warm");
    if (a.as_json) {
        print_json(json{{"target", t.arch.name()}, {"cold", to_json(cold)}, {"warm", to_json(warm)}});
        return cold.failed + warm.failed == 0 ? ok : failed;
    }
    complain_about(cold.things);
    print("\n" + table_of(all, cold, warm));
    auto const shown = [](double ms) {
        return ms < 10'000 ? fmt::format("{:>9.1f} ms", ms) : fmt::format("{:>9.1f} s ", ms * 1e-3);
    };
    print(fmt::format(
        "\ncold  {}   an empty cache: {}\n"
        "warm  {}   the next process: {}\n\n"
        "Next: kiln list                      what there is\n"
        "      kiln doctor                    what was found on this machine, and every setting\n"
        "{}"
        "      kiln compile FILE.cu --arch sm_80,sm_90\n"
        "      kiln record -o app.profile -- ./app   and then   kiln replay app.profile --arch sm_100 -o app.kiln\n"
        "      docs/guide/quick-start.md\n",
        shown(cold.wall_ms),
        a.all ? "all compiled from source in worker processes"
              : "what ships is found, the rest compiled in worker processes",
        shown(warm.wall_ms), warm.compiled == 0 ? "nothing compiled" : "see the table",
        a.all ? "" : "      kiln demo --all                the whole catalogue from source, also what ships\n"));
    return cold.failed + warm.failed == 0 ? ok : failed;
}

}  // namespace

void add_demo(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<demo_arguments>();
    auto* const app = add_command(root, "demo");
    auto* const quick = app->add_flag("--quick", arguments->quick, "the example units alone");
    app->add_flag("--all", arguments->all, "everything, from source")->excludes(quick);
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
