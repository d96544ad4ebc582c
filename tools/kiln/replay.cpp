// SPDX-License-Identifier: Apache-2.0
#include "making.hpp"
#include "misuse.hpp"

#include "replay_foreign.hpp"
#include "store/signing.hpp"
#include "warmup/profile_file.hpp"

#include <algorithm>
#include <set>

namespace kiln::cli {

namespace {

struct replay_arguments {
    std::vector<std::string> profiles;
    std::vector<std::string> archs;
    std::string bundle;
    std::string sign;
    int jobs = 0;
    bool as_json = false;
};

result<warmup::profile> merged(std::vector<std::string> const& files) {
    warmup::profile out;
    for (auto const& f : files) {
        KILN_TRY(auto const one, warmup::read_profile(f));
        out.merge(one);
    }
    return out;
}

// What was recorded, for the architectures it was recorded on or for those asked for.
result<std::vector<thing>> things_of(warmup::profile const& from, std::vector<std::string> const& archs) {
    std::vector<thing> out;
    std::set<std::tuple<base::digest, std::string, std::string>> done;
    auto const costs = from.costs_ms();
    auto const add = [&](warmup::profile_use const& u, std::string const& arch) -> result<void> {
        if (!done.emplace(u.recipe, arch, u.kind).second) return {};
        KILN_TRY(auto const kind, parse_kind(u.kind));
        KILN_TRY(auto const t, target::parse(arch, kind));
        out.push_back({.by = from.recipes.at(u.recipe), .for_target = t, .expected_ms = costs.at(u.recipe)});
        return {};
    };
    for (auto const& u : from.uses) {
        if (archs.empty()) KILN_CHECK(add(u, u.arch));
        for (auto const& a : archs) KILN_CHECK(add(u, a));
    }
    return out;
}

// What 'kiln run --record' wrote is another matter: requests in other programs' words.
bool are_foreign(std::vector<std::string> const& files) {
    auto const foreign = std::ranges::count_if(files, is_foreign_record);
    if (foreign != 0 && foreign != std::ssize(files))
        throw fail(errc::invalid_argument, "profiles and records of 'kiln run' are replayed apart from each other");
    return foreign != 0;
}

int run(replay_arguments const& a) {
    if (are_foreign(a.profiles)) {
        if (!a.sign.empty()) {
            complain("--sign is for bundles; 'kiln capsule build --sign' signs what comes of a record");
            return misused;
        }
        return replay_foreign(
            {.records = a.profiles, .archs = a.archs, .output = a.bundle, .jobs = a.jobs, .as_json = a.as_json});
    }
    if (!a.sign.empty() && a.bundle.empty()) {
        complain("--sign signs a bundle: name it with -o");
        return misused;
    }
    // All that can be wrong with the arguments, before the work.
    if (!a.bundle.empty()) check_output(a.bundle).value();
    if (!a.sign.empty()) (void)store::private_key::load(a.sign).value();
    for (auto const& arch : a.archs) (void)meant(target::parse(arch, artifact_kind::cubin));
    auto const from = merged(a.profiles).value();
    auto things = things_of(from, a.archs).value();
    engine_options options;
    if (a.jobs > 0) options.settings.emplace_back("KILN_WORKERS", std::to_string(a.jobs));
    engine e{options};
    base::stopwatch const watch;
    auto const stale = make_all(e, things, "replay");
    auto const ms = watch.ms();
    bool const writes = !a.bundle.empty() && stale < things.size();
    if (writes) write_bundle(e, things, a.bundle, a.sign).value();
    e.flush_sync();
    // A recipe that cannot be made any more is no reason to fail: the program it was recorded of has moved on.
    if (stale > 0) {
        complain(fmt::format("{} of {} are stale and were skipped:", stale, things.size()));
        complain_about(things);
    }
    if (from.torn_bytes > 0)
        complain(fmt::format("the recording was cut off: its last {} bytes were left out", from.torn_bytes));
    if (a.as_json) {
        json list = json::array();
        for (auto const& t : things) list.push_back(describe(t));
        print_json(json{{"ready", things.size() - stale},
                        {"stale", stale},
                        {"torn_bytes", from.torn_bytes},
                        {"wall_ms", ms},
                        {"bundle", writes ? json(a.bundle) : json()},
                        {"things", std::move(list)}});
    } else {
        print(table_of(things));
        print(fmt::format("{} of {} ready in {:.0f} ms{}\n", things.size() - stale, things.size(), ms,
                          writes             ? ", in " + a.bundle
                          : a.bundle.empty() ? ""
                                             : ", no bundle written"));
    }
    if (stale == 0) return ok;
    return stale == things.size() ? failed : partial;
}

}  // namespace

void add_replay(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<replay_arguments>();
    auto* const app = add_command(root, "replay");
    app->add_option("PROFILE", arguments->profiles, "profiles")->required();
    app->add_option("--arch,-a", arguments->archs, "architectures")->delimiter(',');
    app->add_option("-o,--output", arguments->bundle, "bundle to write");
    app->add_option("--sign", arguments->sign, "private key");
    app->add_option("--jobs,-j", arguments->jobs, "compile processes")->check(CLI::Range(0, 1024));
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
