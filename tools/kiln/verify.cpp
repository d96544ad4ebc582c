// SPDX-License-Identifier: Apache-2.0
#include "base/files.hpp"
#include "compile/elf.hpp"
#include "compile/job.hpp"
#include "engine/engine_state.hpp"
#include "store/bundle.hpp"
#include "unit_arguments.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

namespace kiln::cli {

namespace {

struct verify_arguments {
    unit_arguments what;
    std::string file;  // a bundle, and without --deep the others too are bundles
    std::string key;
    bool deep = false;
    int sample = 8;
    bool as_json = false;
};

struct finding {
    std::string what;
    std::string problem;
};

result<std::shared_ptr<store::bundle_tier>> open(verify_arguments const& a, std::string const& file) {
    store::signature_policy policy;
    if (!a.key.empty()) {
        KILN_TRY(auto key, store::public_key::load(a.key));
        policy.what = store::signature_policy::need::trusted;
        policy.keys.push_back(std::move(key));
    }
    return store::bundle_tier::open(file, policy);
}

std::vector<store::summary> entries_of(store::bundle_tier& bundle) {
    std::vector<store::summary> out;
    bundle.for_each([&](store::summary const& s) { out.push_back(s); }).value();
    return out;
}

result<artifact> decoded(store::bundle_tier& bundle, store::summary const& s) {
    KILN_TRY(auto const found, bundle.find(s.about.at, {}));
    if (!found.hit) return fail(errc::corrupt, "{}", store::name_of(found.why));
    return compile::decode_artifact(found.hit->payload);
}

// Digests can all be right of something that is no artifact, or of another than its label says.
void check_artifacts(store::bundle_tier& bundle, std::vector<finding>& bad) {
    for (auto const& s : entries_of(bundle)) {
        auto const& l = s.about;
        auto const what = fmt::format("{} {}", l.name, l.target);
        auto const a = decoded(bundle, s);
        if (!a) bad.push_back({what, a.error().message()});
        else if (a->unit != l.name || a->target.arch.name() != l.target || name_of(a->target.kind) != l.kind)
            bad.push_back({what, fmt::format("holds another artifact: {} {} {}", a->unit, a->target.arch.name(),
                                             name_of(a->target.kind))});
    }
}

bool has_own_cache(result<compile::tool> const& nvrtc) {
    if (!nvrtc) return false;
    auto const api = cuda::load_nvrtc(nvrtc->path);
    return api && cuda::has_nvrtc_cache((*api)->major, (*api)->minor);
}

// Empty where the artifact was compiled anew to the same, but for names that NVRTC makes of time and process.
std::string difference(result<obtained> const& made, artifact const& shipped) {
    if (!made) return made.error().message();
    // In memory is what another file of this text was just compiled to.
    if (made->from != provenance::compiled && made->from != provenance::memory)
        return fmt::format("was not compiled anew: it came from {}", name_of(made->from));
    auto const& now = *made->what;
    if (now.toolchain != shipped.toolchain)
        return fmt::format("made by {}, this machine has {}: cannot be compared", shipped.toolchain, now.toolchain);
    if (now.key != shipped.key) return "another key: source, options or headers differ ('kiln explain' tells which)";
    return compile::image_essence(now) == compile::image_essence(shipped) ? "" : "same key, other bytes";
}

bool has_entry_of(store::bundle_tier& bundle, unit const& u) {
    return std::ranges::any_of(entries_of(bundle), [&](store::summary const& s) { return s.about.name == u.name; });
}

// A bundle among the files to compile would be looked at by nobody.
bool is_bundle(std::string const& file) {
    std::ifstream in{file, std::ios::binary};
    std::string begin(8, '\0');
    return in.read(begin.data(), 8) && begin == "KILNBNDL";
}

// Names are for people: of several artifacts of one name and target the one that this file made is meant.
std::string difference(result<obtained> const& made, store::bundle_tier& bundle,
                       std::vector<store::summary> const& entries, store::summary const& like) {
    std::string out;
    for (auto const& s : entries) {
        if (s.about.name != like.about.name || s.about.target != like.about.target || s.about.kind != like.about.kind)
            continue;
        auto const shipped = decoded(bundle, s);
        if (!shipped) continue;
        out = difference(made, *shipped);
        if (out.empty()) break;
    }
    return out;
}

// Compiles a sample anew, around every cache, and compares the images.
int recompile(verify_arguments const& a, store::bundle_tier& bundle, std::vector<finding>& bad) {
    auto units = a.what.units().value();
    auto const scratch = base::temporary_directory::make("kiln-verify").value();
    auto options = a.what.engine();
    options.settings.insert(options.settings.end(),
                            {{"KILN_CACHE_DIR", scratch.path() / "cache"},
                             {"KILN_CACHE_PATH_RO", ""},
                             {"KILN_BUNDLES", ""},
                             {"KILN_RECACHE", "1"},  // also around the bundle beside this program and those inside it
                             {"KILN_PCH", "0"},      // and in the plainest way, or a fault of that would be made again
                             {"KILN_JIT", "allow"}});
    ::setenv("CUDA_CACHE_DISABLE", "1", 1);  // the driver's; workers have our environment
    engine e{options};
    if (has_own_cache(e.internals().nvrtc())) {
        for (auto& u : units) u.options.emplace_back("--no-cache");  // not part of any key
    }
    auto const entries = entries_of(bundle);
    int compared = 0;
    for (auto const& u : units) {
        std::set<std::pair<std::string, std::string>>
            seen;  // each once: what this process made it would be given from memory
        for (auto const& s : entries) {
            if (s.about.name != u.name || compared >= a.sample) continue;
            if (!seen.emplace(s.about.target, s.about.kind).second) continue;
            auto const shipped = decoded(bundle, s);
            if (!shipped) continue;  // already among the bad ones
            ++compared;
            auto problem = difference(e.artifact_sync(u, shipped->target), bundle, entries, s);
            if (!problem.empty())
                bad.push_back({fmt::format("{} {}", s.about.name, s.about.target), std::move(problem)});
        }
    }
    for (std::size_t n = 0; n < units.size(); ++n) {
        if (!has_entry_of(bundle, units[n]))
            bad.push_back({"--deep", fmt::format("nothing was compared with {}: the bundle has nothing called '{}'",
                                                 a.what.files[n], units[n].name)});
    }
    return compared;
}

int check(verify_arguments const& a, std::string const& file, json& all) {
    auto const bundle = open(a, file).value();
    std::vector<finding> bad;
    for (auto const& [at, why] : bundle->verify().value())
        bad.push_back({at.key.hex().substr(0, 16), std::string{store::name_of(why)}});
    if (bad.empty()) check_artifacts(*bundle, bad);
    int const compared = a.deep ? recompile(a, *bundle, bad) : 0;
    auto const& info = bundle->info();
    if (a.as_json) {
        json list = json::array();
        for (auto const& f : bad) list.push_back({{"what", f.what}, {"problem", f.problem}});
        all.push_back({{"file", file},
                       {"artifacts", info.entries},
                       {"signature", store::name_of(info.signed_by)},
                       {"recompiled", compared},
                       {"bad", std::move(list)}});
    } else {
        for (auto const& f : bad) complain(fmt::format("{}: {}: {}", file, f.what, f.problem));
        print(fmt::format("{}: {} checked, {} bad, signature {}{}\n", file, count_of(info.entries, "artifact"),
                          bad.size(), store::name_of(info.signed_by),
                          a.deep ? fmt::format(", {} recompiled and compared", compared) : ""));
    }
    return bad.empty() ? ok : failed;
}

int run(verify_arguments const& a) {
    if (a.deep && a.what.files.empty()) {
        complain("--deep recompiles: name the source files, with the options the bundle was built with");
        return misused;
    }
    if (auto const other = std::ranges::find_if(a.what.files, is_bundle); a.deep && other != a.what.files.end()) {
        complain(fmt::format("{} is a bundle: --deep takes one, and behind it the source files", *other));
        return misused;
    }
    std::vector<std::string> bundles{a.file};
    if (!a.deep) bundles.insert(bundles.end(), a.what.files.begin(), a.what.files.end());
    json all = json::array();
    int status = ok;
    for (auto const& file : bundles) {
        try {
            status = std::max(status, check(a, file, all));
        } catch (error const& e) {
            if (bundles.size() == 1) throw;
            complain(e);
            all.push_back({{"file", file}, {"error", e.message()}});
            status = failed;
        }
    }
    if (a.as_json) print_json(bundles.size() == 1 ? all.front() : all);
    return status;
}
}  // namespace

void add_verify(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<verify_arguments>();
    auto* const app = add_command(root, "verify");
    app->add_option("BUNDLE", arguments->file, "bundle")->required();
    arguments->what.add_to(*app, unit_arguments::files_are::optional);
    app->add_option("--key", arguments->key, "public key");
    app->add_flag("--deep", arguments->deep, "recompile and compare");
    app->add_option("--sample", arguments->sample, "how many to recompile")->check(CLI::Range(1, 1'000'000));
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
