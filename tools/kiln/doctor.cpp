// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"
#include "engine/engine_state.hpp"

#include <kiln/version.hpp>

#include <filesystem>

namespace kiln::cli {

namespace {

struct finding {
    std::string what;
    std::string state;  // "ok", "missing", "problem"
    std::string value;
    std::string remedy;  // empty when ok
};

finding tool_finding(std::string what, result<compile::tool> const& found, std::string remedy) {
    if (!found) return {std::move(what), "missing", found.error().message(), std::move(remedy)};
    return {std::move(what), "ok", fmt::format("{} (by {}; {})", found->path, found->found, found->toolchain), {}};
}

finding version_finding(engine::state& s) {
    // Asking for the version loads the library: this is a diagnosis, so it may.
    auto const api = cuda::load_nvrtc(s.tools().nvrtc);
    if (!api) return {"NVRTC version", "problem", api.error().message(), "install NVRTC 12.8 or newer"};
    std::string archs;
    if (auto const known = (*api)->supported_archs()) {
        for (int const a : *known) archs += fmt::format("{}sm_{}", archs.empty() ? "" : " ", a);
    }
    return {"NVRTC version", "ok", fmt::format("{}.{}: {}", (*api)->major, (*api)->minor, archs), {}};
}

void add_devices(std::vector<finding>& out) {
    auto const all = devices();
    if (!all) {
        out.push_back({"GPU", "missing", all.error().message(),
                       "nothing is needed for compiling and bundling; to run kernels install the NVIDIA driver"});
        return;
    }
    for (auto const& d : *all) {
        out.push_back(
            {fmt::format("GPU {}", d.ordinal),
             "ok",
             fmt::format("{}, {}, {} multiprocessors, {}, driver for CUDA {}.{}", d.name, d.target(), d.multiprocessors,
                         bytes_text(d.memory_bytes), d.driver_version / 1000, d.driver_version % 1000 / 10),
             {}});
    }
}

void add_store(std::vector<finding>& out, engine::state& s) {
    auto const directory = s.store->probe_directory();
    if (!directory) {
        auto const& why = s.store->options().no_disk_reason;
        out.push_back({"cache", "missing", why.empty() ? "nothing is kept on disk" : why,
                       "set KILN_CACHE_DIR to a directory of your own, or unset KILN_DISABLE"});
    } else {
        bool const good = directory->reason.empty();
        out.push_back(
            {"cache", good ? "ok" : "problem",
             fmt::format("{} ({}{}{}{}{}, bound {}){}", directory->root.native(), store::name_of(directory->state),
                         directory->filesystem.empty() ? "" : ", ", directory->filesystem,
                         directory->state == store::directory_state::writable ? ", locks: " : "",
                         directory->state == store::directory_state::writable ? store::name_of(directory->locks) : "",
                         bytes_text(s.config.size("KILN_MAX_SIZE").value_or(0)), good ? "" : ": " + directory->reason),
             good ? "" : "make it a directory that you may write to, or set KILN_CACHE_DIR to another"});
    }
    // Bundles are opened by who asks for them first.
    std::vector<std::string> refused;
    auto const watching = s.events.subscribe([&](event const& e) {
        bool const is_key = e.kind == event_kind::warned && e.reason.view() == "bundle-key";
        if (e.kind == event_kind::rejected || is_key) refused.emplace_back(e.detail.view());
    });
    auto const bundles = s.store->bundles();
    for (auto const& why : refused) {
        out.push_back(
            {"bundle", "problem", why,
             "correct KILN_BUNDLES or KILN_BUNDLE_KEY, or build the bundle again and sign it ('kiln build --sign')"});
    }
    for (auto const& b : bundles) {
        out.push_back({"bundle",
                       "ok",
                       fmt::format("{} ({} artifacts, {})", b->info().origin, b->info().entries,
                                   store::name_of(b->info().signed_by)),
                       {}});
    }
}

std::vector<finding> examine(engine::state& s) {
    std::vector<finding> out;
    out.push_back({"kiln", "ok", std::string{kiln::version}, {}});
    add_devices(out);
    auto const& named = s.config.text("KILN_CUDA_PATH");
    auto const elsewhere =
        named.empty() ? std::string{"or set KILN_CUDA_PATH"}
                      : fmt::format("and correct or remove KILN_CUDA_PATH={}, the only place looked at", named);
    out.push_back(
        tool_finding("NVRTC", s.nvrtc(), "install the CUDA toolkit, or 'pip install nvidia-cuda-nvrtc', " + elsewhere));
    if (s.nvrtc()) out.push_back(version_finding(s));
    out.push_back(
        tool_finding("nvJitLink", s.nvjitlink(), "only needed to link LTO-IR: 'pip install nvidia-nvjitlink'"));
    std::string includes;
    for (auto const& directory : s.tools().toolkit_includes) includes += (includes.empty() ? "" : ", ") + directory;
    if (includes.empty()) {
        out.push_back({"CUDA headers", "missing", "none found",
                       "only needed by units that include them: install the CUDA toolkit"});
    } else out.push_back({"CUDA headers", "ok", includes, {}});
    auto const worker = compile::worker_pool::find_worker(s.config.text("KILN_WORKER"));
    if (worker)
        out.push_back({"workers", "ok", fmt::format("up to {} of {}", s.pool->capacity(), worker->native()), {}});
    else
        out.push_back({"workers", "problem", worker.error().message(),
                       "set KILN_WORKER to the kiln-worker program; compiling in the process until then"});
    add_store(out, s);
    for (auto const& problem : s.config.problems())
        out.push_back({"settings", "problem", problem, "correct or remove the setting"});
    return out;
}

json settings_json(base::config const& config) {
    json out = json::array();
    for (auto const& k : base::knobs()) {
        auto const& value = config.get(k.variable);
        out.push_back(
            {{"name", k.variable}, {"value", value.value}, {"from", base::name_of(value.from)}, {"help", k.help}});
    }
    return out;
}

int run(bool as_json) {
    engine e;
    auto& s = e.internals();
    auto const findings = examine(s);
    bool healthy = true;
    for (auto const& f : findings) healthy = healthy && f.state != "problem";
    if (as_json) {
        json list = json::array();
        for (auto const& f : findings)
            list.push_back({{"what", f.what}, {"state", f.state}, {"value", f.value}, {"remedy", f.remedy}});
        print_json(json{{"healthy", healthy}, {"findings", std::move(list)}, {"settings", settings_json(s.config)}});
        return healthy ? ok : failed;
    }
    for (auto const& f : findings) {
        print(fmt::format("{:<8} {:<14} {}\n", f.state, f.what, f.value));
        if (!f.remedy.empty()) print(fmt::format("{:<8} {:<14} → {}\n", "", "", f.remedy));
    }
    std::vector<std::vector<std::string>> rows{{"setting", "value", "from"}};
    for (auto const& k : base::knobs()) {
        auto const& value = s.config.get(k.variable);
        rows.push_back({std::string{k.variable}, value.value.empty() ? "-" : value.value,
                        value.from == base::origin::file ? value.file : std::string{base::name_of(value.from)}});
    }
    print("\n" + table(rows));
    return healthy ? ok : failed;
}

}  // namespace

void add_doctor(CLI::App& root, std::vector<command>& commands) {
    auto as_json = std::make_shared<bool>(false);
    auto* const app = add_command(root, "doctor");
    app->add_flag("--json", *as_json, "JSON on stdout");
    commands.push_back({app, [as_json] { return run(*as_json); }});
}

}  // namespace kiln::cli
