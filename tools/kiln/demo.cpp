// SPDX-License-Identifier: Apache-2.0
// What a newcomer should see first: everything Kiln has, made ready for this machine, once cold and once warm.
#include "making.hpp"

#include "base/files.hpp"

#include "embedded/demo_units.hpp"

#include <kiln/status.hpp>

namespace kiln::cli {

namespace {

std::vector<engine_detail::recipe> demo_units() {
    std::vector<engine_detail::recipe> out;
    for (auto const& file : embedded::demo_units()) {
        unit u;
        u.name = std::string{file.name.substr(0, file.name.rfind('.'))};
        u.source = std::string{file.data};
        out.push_back(engine_detail::recipe_of(u));
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

// Each pass is a fresh engine: what the second finds, it finds as the next process would.
pass make_ready(std::vector<engine_detail::recipe> const& all, target t, std::string const& cache, from_scratch how) {
    engine e{{.settings = {{"KILN_CACHE_DIR", cache},
                           {"KILN_DISABLE", ""},
                           {"KILN_READONLY", ""},
                           {"KILN_BUNDLES", ""},
                           {"KILN_RECACHE", how == from_scratch::yes ? "1" : ""},
                           {"KILN_JIT", "allow"}}}};
    pass out;
    for (auto const& r : all) out.things.push_back({.by = r, .for_target = t});
    base::stopwatch const watch;
    out.failed = make_all(e, out.things, how == from_scratch::yes ? "cold" : "warm");
    auto const s = status(e);
    out.wall_ms = s.wall_ms;
    out.compiled = s.compiled;
    e.flush_sync();
    return out;
}

struct group {
    std::string name;
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    double compile_ms = 0;
    std::size_t found = 0;  // in the second pass, without compiling
};

// By pack, in the order of the catalogue.
std::vector<group> grouped(pass const& cold, pass const& warm) {
    std::vector<group> out;
    for (std::size_t i = 0; i < cold.things.size(); ++i) {
        auto const& c = cold.things[i];
        auto const name = c.by.kind == "unit" ? std::string{"example units"} : c.by.kind;
        auto at = std::ranges::find(out, name, &group::name);
        if (at == out.end()) at = out.insert(out.end(), {.name = name});
        ++at->count;
        if (*c.answer) at->bytes += (*c.answer)->got.what->image.size();
        at->compile_ms += c.compile_ms;
        at->found += *warm.things[i].answer && warm.things[i].from != provenance::compiled ? 1 : 0;
    }
    return out;
}

json to_json(pass const& p) {
    json list = json::array();
    for (auto const& t : p.things) list.push_back(describe(t));
    return {{"wall_ms", p.wall_ms}, {"compiled", p.compiled}, {"failed", p.failed}, {"things", std::move(list)}};
}

struct demo_arguments {
    bool quick = false;
    bool as_json = false;
};

int run(demo_arguments const& a) {
    auto all = demo_units();
    if (!a.quick) {
        for (auto& r : recipes_of_everything()) all.push_back(std::move(r));
    }
    auto const here = arch_of_this_machine();
    auto const t = target::make(here.arch, artifact_kind::cubin).value();
    auto const scratch = base::temporary_directory::make("kiln-demo").value();
    auto const cache = (scratch.path() / "cache").native();
    if (!a.as_json)
        print(fmt::format("Kiln: {} units and specialisations for {}\n", all.size(),
                          here.found ? fmt::format("{} ({})", here.device, t.arch.name())
                                     : fmt::format("{} (no GPU here; compiling needs none)", t.arch.name())));
    std::fflush(stdout);
    auto const cold = make_ready(all, t, cache, from_scratch::yes);
    auto const warm = make_ready(all, t, cache, from_scratch::no);
    if (a.as_json) {
        print_json(json{{"target", t.arch.name()}, {"cold", to_json(cold)}, {"warm", to_json(warm)}});
        return cold.failed + warm.failed == 0 ? ok : failed;
    }
    complain_about(cold.things);
    std::vector<std::vector<std::string>> rows{{"", "count", "size", "compile time", "found when warm"}};
    group sum{.name = "all"};
    for (auto const& g : grouped(cold, warm)) {
        rows.push_back({g.name, std::to_string(g.count), bytes_text(g.bytes),
                        fmt::format("{:.1f} s", g.compile_ms * 1e-3), fmt::format("{} of {}", g.found, g.count)});
        sum.count += g.count;
        sum.bytes += g.bytes;
        sum.compile_ms += g.compile_ms;
        sum.found += g.found;
    }
    rows.push_back({sum.name, std::to_string(sum.count), bytes_text(sum.bytes),
                    fmt::format("{:.1f} s", sum.compile_ms * 1e-3), fmt::format("{} of {}", sum.found, sum.count)});
    print("\n" + table(rows));
    print(fmt::format(
        "\ncold  {:>9.1f} ms   compiled from source in worker processes\n"
        "warm  {:>9.1f} ms   the next process: found in the cache and in the library\n\n"
        "Next: kiln list                      what there is\n"
        "      kiln doctor                    what was found on this machine, and every setting\n"
        "      kiln compile FILE.cu --arch sm_80,sm_90\n"
        "      kiln record -o app.profile -- ./app   and then   kiln replay app.profile --arch sm_100 -o app.kiln\n"
        "      docs/guide/quick-start.md\n",
        cold.wall_ms, warm.wall_ms));
    return cold.failed + warm.failed == 0 ? ok : failed;
}

}  // namespace

void add_demo(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<demo_arguments>();
    auto* const app = add_command(root, "demo");
    app->add_flag("--quick", arguments->quick, "the example units alone");
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
