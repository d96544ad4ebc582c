// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "base/quiet_writes.hpp"
#include "base/text.hpp"
#include "capsule.hpp"
#include "run_recording.hpp"
#include "run_session.hpp"

namespace kiln::cli {

namespace {

struct run_arguments {
    run_session session;
    std::string record;
    std::string capsule;
    std::string key;
    bool unsigned_too = false;
    bool no_frameworks = false;
    bool json = false;
};

json as_json(intercept::happening const& h) {
    json out{{"what", name_of(h.kind)}, {"process", h.process}, {"by", h.by},           {"library", h.library},
             {"program", h.program},    {"target", h.target},   {"us", h.took.count()}, {"cost_ms", h.cost.count()}};
    if (h.waited.count() > 0) out["waited_us"] = h.waited.count();
    if (auto const request = intercept::request_of(h)) out["request"] = request->hex();
    if (h.at) {
        out["family"] = h.at->family.hex();
        out["key"] = h.at->key.hex();
    }
    if (!h.detail.empty()) out["detail"] = h.detail;
    return out;
}

json record_of(run_arguments const& a, run_recording const& recording, std::vector<intercept::happening> const& all,
               std::filesystem::path const& caches) {
    json happenings = json::array();
    for (auto const& h : all) happenings.push_back(as_json(h));
    // By name alone: the record and what belongs to it travel together.
    return {{"format", "kiln-run"},
            {"version", 1},
            {"program", a.session.program},
            {"caches", caches.filename().native()},
            {"requests", recording ? recording.requests().filename().native() : ""},
            {"happenings", std::move(happenings)}};
}

// What a program gets of a capsule, for who asks: one that compiles nothing itself uses the caches alone.
void tell_of_capsule(run_arguments const& a, std::filesystem::path const& place,
                     std::vector<std::string> const& frameworks) {
    std::size_t answers = 0;
    std::error_code failed;
    for (std::filesystem::recursive_directory_iterator at{place / "cache" / "v1", failed}, end; !failed && at != end;
         at.increment(failed))
        answers += at->path().extension() == ".kiln" ? 1U : 0U;
    base::quiet_writes const quiet;
    complain(fmt::format("run: {}: {}, caches of {}", a.capsule, count_of(answers, "answer"),
                         frameworks.empty() ? "no framework" : fmt::format("{}", fmt::join(frameworks, ", "))));
}

void use_capsule(run_arguments const& a, run_environment& surroundings) {
    auto const place =
        unpack_for_run(a.capsule, {.key = a.key, .unsigned_too = a.unsigned_too}, surroundings.folder_for_capsules())
            .value();
    if (place.empty()) return;
    surroundings.use_capsule(place / "cache");
    std::vector<std::string> frameworks;
    if (!a.no_frameworks) frameworks = surroundings.use_framework_caches(place / "caches", framework_use::filled);
    if (a.session.talk.verbose) tell_of_capsule(a, place, frameworks);
}

run_recording begin_recording(run_arguments const& a, run_environment& surroundings) {
    if (a.record.empty()) return {};
    auto out = run_recording::open(a.record).value();
    if (base::make_directories(out.requests(), 0700)) surroundings.set("KILN_RUN_REQUESTS", out.requests().native());
    if (out.adds() && !a.session.talk.quiet) {
        base::quiet_writes const quiet;
        complain(
            fmt::format("run: {}: there is a record in it, which is added to; to begin anew remove it, {}.requests "
                        "and {}.caches",
                        a.record, a.record, a.record));
    }
    return out;
}

run_outcome run_and_tell(run_arguments const& a) {
    auto const settings = base::config::load();
    run_environment surroundings{settings};
    auto const recording = begin_recording(a, surroundings);
    if (!a.capsule.empty()) use_capsule(a, surroundings);
    std::filesystem::path caches;
    if (recording && !a.no_frameworks && a.capsule.empty()) {
        caches = recording.caches();
        (void)surroundings.use_framework_caches(caches, framework_use::recording);
    }
    auto out = run_in(surroundings, settings, a.session);
    if (!out.is_started) return out;
    auto const& all = out.log.happenings;
    if (a.json) {
        base::quiet_writes const quiet;
        std::fputs((base::json_text(record_of(a, recording, all, caches)) + "\n").c_str(), stderr);
    } else tell(out.talk, all);
    if (!recording) return out;
    if (auto const written = recording.add(record_of(a, recording, all, caches)); !written) {
        // How the program ended counts more, unless all was well.
        base::quiet_writes const quiet;
        complain(written.error());
        if (ended_well(out)) out = {.status = failed, .is_ours = true, .log = {}, .talk = {}};
    }
    return out;
}

}  // namespace

void add_run(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<run_arguments>();
    auto* const app = add_command(root, "run");
    app->add_option("--record", arguments->record, "what was asked for, for 'kiln capsule build'");
    app->add_option("--capsule", arguments->capsule, "answers and caches to start with");
    app->add_option("--key", arguments->key, "public key the capsule must be signed by");
    app->add_flag("--unsigned", arguments->unsigned_too, "use a capsule nobody vouches for");
    app->add_option("--jit", arguments->session.jit, "allow, warn or forbid")
        ->check(CLI::IsMember({"allow", "warn", "forbid"}));
    app->add_flag("--no-frameworks", arguments->no_frameworks, "leave the caches of frameworks alone");
    app->add_flag("--verify", arguments->session.verify, "make every answer again and compare");
    app->add_flag("--eager", arguments->session.eager, "open the compiler when the program does");
    app->add_flag("-v,--verbose", arguments->session.talk.verbose, "one line for each compile");
    app->add_flag("-q,--quiet", arguments->session.talk.quiet, "no line at the end");
    app->add_flag("--json", arguments->json, "the summary as JSON, on standard error");
    app->add_option("PROGRAM", arguments->session.program, "program and its arguments")->required();
    app->prefix_command(false);
    app->positionals_at_end();
    commands.push_back({app, [arguments] {
                            arguments->session.talk.warns = arguments->session.jit == "warn";
                            return end_of(run_and_tell(*arguments));
                        }});
}

}  // namespace kiln::cli
