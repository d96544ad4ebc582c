// SPDX-License-Identifier: Apache-2.0
#include "arch_words.hpp"
#include "keeping.hpp"
#include "making.hpp"
#include "misuse.hpp"
#include "named_toolkit.hpp"

#include "replay_foreign.hpp"
#include "store/signing.hpp"
#include "warmup/profile_file.hpp"

#include <algorithm>

namespace kiln::cli {

namespace {

struct replay_arguments {
    std::vector<std::string> profiles;
    std::vector<std::string> archs;
    std::string bundle;
    std::string sign;
    int jobs = 0;
    bool complete = false;
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
        if (a.complete) {
            complain("--complete is for bundles, and records of 'kiln run' give none");
            return misused;
        }
        if (!a.bundle.empty()) check_apart({a.bundle}, a.profiles).value();
        return replay_foreign(
            {.records = a.profiles, .archs = a.archs, .output = a.bundle, .jobs = a.jobs, .as_json = a.as_json});
    }
    if (!a.sign.empty() && a.bundle.empty()) {
        complain("--sign signs a bundle: name it with -o");
        return misused;
    }
    // All that can be wrong with the arguments, before the work.
    if (!a.bundle.empty()) {
        check_output(a.bundle).value();
        check_apart({a.bundle}, a.profiles).value();
    }
    if (!a.sign.empty()) (void)store::private_key::load(a.sign).value();
    (void)meant(targets_of_words(a.archs));
    auto const from = merged(a.profiles).value();
    auto things = things_of(from, a.archs).value();
    engine_options options;
    if (a.jobs > 0) options.settings.emplace_back("KILN_WORKERS", std::to_string(a.jobs));
    engine e{options};
    insist_on_toolkit(e);
    base::stopwatch const watch;
    auto const stale = make_all(e, things, "replay");
    auto const ms = watch.ms();
    bool const writes = !a.bundle.empty() && (a.complete ? stale == 0 : stale < things.size());
    if (writes) write_bundle(e, things, a.bundle, a.sign).value();
    write_all(e);
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
    app->add_flag("--complete", arguments->complete, "a bundle of everything, or none");
    app->add_option("--sign", arguments->sign, "private key");
    app->add_option("--jobs,-j", arguments->jobs, "compile processes")->check(CLI::Range(0, 1024));
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
