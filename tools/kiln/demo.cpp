// SPDX-License-Identifier: Apache-2.0
// The main job on one screen: the example units made ready for this machine, once cold and once warm.
#include "command.hpp"
#include "progress.hpp"

#include "base/files.hpp"
#include "engine/engine_state.hpp"

#include "embedded/demo_units.hpp"

namespace kiln::cli {

namespace {

std::vector<unit> demo_units() {
    std::vector<unit> out;
    for (auto const& file : embedded::demo_units()) {
        unit u;
        u.name = std::string{file.name.substr(0, file.name.rfind('.'))};
        u.source = std::string{file.data};
        out.push_back(std::move(u));
    }
    return out;
}

struct pass {
    std::vector<obtained> got;
    double total_ms = 0;
    std::uint64_t blocked = 0;
};

// Each pass is a fresh engine: what the second finds, it finds on disk, as the next process would.
result<pass> make_ready(std::vector<unit> const& units, target t, std::string const& cache, std::string const& title) {
    engine e{{.settings = {{"KILN_CACHE_DIR", cache},
                           {"KILN_DISABLE", ""},
                           {"KILN_READONLY", ""},
                           {"KILN_BUNDLES", ""},
                           {"KILN_JIT", "allow"}}}};
    base::stopwatch const watch;
    pass out;
    {
        auto const bar = std::make_shared<progress>(title, units.size());
        std::vector<pending<obtained>> waiting;
        for (auto const& u : units) {
            waiting.push_back(e.artifact(u, t));
            waiting.back().then([bar, name = u.name](result<obtained> const&) { bar->step(name); });
        }
        for (auto const& w : waiting) {
            KILN_TRY(auto got, w.wait_sync());
            out.got.push_back(std::move(got));
        }
    }
    out.total_ms = watch.ms();
    e.flush_sync();
    return out;
}

int run(bool as_json) {
    auto const units = demo_units();
    auto const here = arch_of_this_machine();
    auto const t = target::make(here.arch, artifact_kind::cubin).value();
    auto const scratch = base::temporary_directory::make("kiln-demo").value();
    auto const cache = (scratch.path() / "cache").native();
    auto const cold = make_ready(units, t, cache, "cold").value();
    auto const warm = make_ready(units, t, cache, "warm").value();

    if (as_json) {
        json rows = json::array();
        for (std::size_t i = 0; i < units.size(); ++i) {
            rows.push_back({{"unit", units[i].name},
                            {"target", t.arch.name()},
                            {"bytes", cold.got[i].what->image.size()},
                            {"cold", {{"from", name_of(cold.got[i].from)}, {"ms", cold.got[i].ms}}},
                            {"warm", {{"from", name_of(warm.got[i].from)}, {"ms", warm.got[i].ms}}}});
        }
        print_json(json{{"units", std::move(rows)}, {"cold_ms", cold.total_ms}, {"warm_ms", warm.total_ms}});
        return ok;
    }
    print(here.found ? fmt::format("Kiln: {} units for {} ({})\n\n", units.size(), here.device, t.arch.name())
                     : fmt::format("Kiln: {} units for {} (no GPU here; compiling needs none)\n\n", units.size(),
                                   t.arch.name()));
    std::vector<std::vector<std::string>> rows{{"unit", "size", "kernels", "cold ms", "from", "warm ms", "from"}};
    for (std::size_t i = 0; i < units.size(); ++i) {
        auto const& c = cold.got[i];
        auto const& w = warm.got[i];
        rows.push_back({units[i].name, bytes_text(c.what->image.size()), std::to_string(c.what->kernels.size()),
                        fmt::format("{:.1f}", c.ms), std::string{name_of(c.from)}, fmt::format("{:.2f}", w.ms),
                        std::string{name_of(w.from)}});
    }
    rows.push_back({"all", "", "", fmt::format("{:.1f}", cold.total_ms), "", fmt::format("{:.2f}", warm.total_ms), ""});
    print(table(rows));
    print(
        fmt::format("\nCold: compiled in worker processes. Warm: a second engine found the same artifacts on disk, "
                    "{:.0f} times faster.\n"
                    "Next: kiln doctor, kiln compile FILE.cu --arch sm_80,sm_90, kiln compile --help\n",
                    cold.total_ms / std::max(warm.total_ms, 0.001)));
    return ok;
}

}  // namespace

void add_demo(CLI::App& root, std::vector<command>& commands) {
    auto as_json = std::make_shared<bool>(false);
    auto* const app = add_command(root, "demo");
    app->add_flag("--json", *as_json, "JSON on stdout");
    commands.push_back({app, [as_json] { return run(*as_json); }});
}

}  // namespace kiln::cli
