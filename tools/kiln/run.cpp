// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "base/quiet_writes.hpp"
#include "base/text.hpp"
#include "capsule.hpp"
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
    if (h.at) {
        out["family"] = h.at->family.hex();
        out["request"] = h.at->request.hex();
        out["key"] = h.at->key.hex();
    }
    if (!h.detail.empty()) out["detail"] = h.detail;
    return out;
}

std::filesystem::path requests_of(run_arguments const& a) { return std::filesystem::absolute(a.record + ".requests"); }

json record_of(run_arguments const& a, std::vector<intercept::happening> const& all,
               std::filesystem::path const& caches) {
    json happenings = json::array();
    for (auto const& h : all) happenings.push_back(as_json(h));
    // By name alone: the record and what belongs to it travel together.
    return {{"format", "kiln-run"},
            {"version", 1},
            {"program", a.session.program},
            {"caches", caches.filename().native()},
            {"requests", a.record.empty() ? "" : requests_of(a).filename().native()},
            {"happenings", std::move(happenings)}};
}

run_outcome run_and_tell(run_arguments const& a) {
    if (!a.record.empty()) check_text_output(a.record).value();
    auto const settings = base::config::load();
    run_environment surroundings{settings};
    if (!a.capsule.empty()) {
        auto const place = unpack_for_run(a.capsule, {.key = a.key, .unsigned_too = a.unsigned_too},
                                          surroundings.folder_for_capsules())
                               .value();
        if (!place.empty()) surroundings.use_capsule(place / "cache");
        if (!place.empty() && !a.no_frameworks)
            surroundings.use_framework_caches(place / "caches", framework_use::filled);
    }
    if (!a.record.empty() && base::make_directories(requests_of(a), 0700))
        surroundings.set("KILN_RUN_REQUESTS", requests_of(a).native());
    std::filesystem::path caches;
    if (!a.record.empty() && !a.no_frameworks && a.capsule.empty()) {
        caches = std::filesystem::absolute(a.record + ".caches");
        surroundings.use_framework_caches(caches, framework_use::recording);
    }
    auto out = run_in(surroundings, settings, a.session);
    if (!out.is_started) return out;
    auto const& all = out.log.happenings;
    if (a.json) {
        base::quiet_writes const quiet;
        std::fputs((base::json_text(record_of(a, all, caches)) + "\n").c_str(), stderr);
    } else tell(out.talk, all);
    if (!a.record.empty())
        write_text_output(a.record, base::as_bytes(base::json_text(record_of(a, all, caches), 1) + "\n")).value();
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
    app->add_option("COMMAND", arguments->session.program, "program and its arguments")->required();
    app->prefix_command(false);
    app->positionals_at_end();
    commands.push_back({app, [arguments] {
                            arguments->session.talk.warns = arguments->session.jit == "warn";
                            return end_of(run_and_tell(*arguments));
                        }});
}

}  // namespace kiln::cli
