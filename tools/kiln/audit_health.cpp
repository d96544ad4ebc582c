// SPDX-License-Identifier: Apache-2.0
#include "audit_health.hpp"

#include "audit/health.hpp"
#include "audit_judged.hpp"
#include "audit_object.hpp"
#include "base/files.hpp"

#include <stdio_ext.h>

namespace kiln::cli {

namespace {

struct health_arguments {
    std::vector<std::string> recordings, program;
    std::string baseline, write_baseline;
    bool as_json = false;
};

result<audit::health_baseline> read_baseline(std::string const& file) {
    KILN_TRY(auto const text, base::read_file(file));
    auto out = audit::parse_health_baseline(text ? base::as_text(*text) : "");
    if (!out) return error{out.error()}.within(file);
    return out;
}

int no_answer(std::string const& why) {
    complain("audit health: it cannot be judged: " + audit::plain_text(why));
    return not_judgeable;
}

int judged_by(audit::health_baseline const& before, audit::health const& h) {
    auto const verdict = compare(before, h);
    if (!verdict.why_not.empty()) return no_answer(verdict.why_not);
    for (auto const& what : verdict.broken) complain("audit health: broken: " + what);
    if (!verdict.broken.empty() && h.missing.contains("libcuda.so.1"))
        complain("audit health: no NVIDIA driver was found (libcuda.so.1) on this machine");
    return verdict.broken.empty() ? ok : broken;
}

struct gathered_health {
    audit::health all;
    std::string why_not;  // empty: it can be judged
};

void add_health(judged_recording const& all, gathered_health& to) {
    if (!all.result.can_be_judged && !all.result.nothing_ran) to.why_not = all.result.why_not;
    else if (auto const why = audit::why_not_counted(all.model); !why.empty()) to.why_not = why;
    audit::add_health(all.model, {}, to.all);
}

// Recordings that were named: one that is not there is an error, and never a program.
gathered_health gather_health(std::vector<std::string> const& from) {
    gathered_health out;
    for (auto const& one : from) {
        std::error_code ignored;
        if (!std::filesystem::exists(one, ignored))
            throw error{errc::not_found,
                        fmt::format("no recording {}; to run a program: kiln audit health -- {}", one, one)};
        add_health(*read_and_judge(one), out);
    }
    return out;
}

// One that its program took away is done without.
gathered_health gather_health(recording_place const& place, std::string const& about) {
    gathered_health out;
    auto run = read_run(place, about);
    if (run.why_none.empty()) add_health(*judge(std::move(run.all)), out);
    else out.why_not = "nothing was recorded: " + run.why_none;
    return out;
}

struct health_run {
    gathered_health found;
    int status = ok;  // of the program
};
result<health_run> run_for_health(std::vector<std::string> const& program) {
    auto place = recording_place::make({}).value();
    KILN_TRY(auto const ended, run_audited({.program = program}, place));
    place.remove_on_signals();
    unbroken_by_writing const guard;
    return health_run{gather_health(place, ended.about),
                      WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : 128 + WTERMSIG(ended.status)};
}

json no_health(std::string const& why) { return {{"gpu_share", nullptr}, {"why_not", why}}; }

// Whether somebody took it: how the program ended counts more than that.
bool print_health_object(gathered_health const& h, recorded when) {
    auto data = audit::to_json(h.all);
    if (!h.why_not.empty()) data["why_not"] = audit::plain_text(h.why_not);
    try {
        print_last(data, when);
        return true;
    } catch (error const& e) {
        complain(e);
    }
    ::__fpurge(stdout);
    return false;
}

// Every later run would keep it.
std::string why_no_baseline(audit::health const& h, int status, int answer) {
    if (status != ok) return "the command failed, and what it left out would not be in it";
    if (answer != ok)
        return "this run does not keep the other one; to take less from now on, write it without --baseline";
    if (h.processes.gpu == 0) return "nothing ran on a GPU, and every later run would keep it";
    return {};
}

int print_health(health_arguments const& a) {
    if (a.recordings.empty() && a.program.empty()) {
        complain("name recordings, or a command after --");
        return misused;
    }
    std::optional<audit::health_baseline> before;
    if (!a.baseline.empty()) {
        auto const read = read_baseline(a.baseline);
        if (!read) {
            complain(read.error());
            return misused;
        }
        before = *read;
    }
    if (!a.write_baseline.empty()) check_text_output(a.write_baseline).value();
    if (std::error_code ignored; !a.program.empty() && std::filesystem::is_directory(a.program.front(), ignored)) {
        complain(fmt::format("{} is a directory: what follows -- is a command, and recordings come without it",
                             a.program.front()));
        return misused;
    }
    health_run h;
    if (a.program.empty()) h.found = gather_health(a.recordings);
    else {
        auto ran = run_for_health(a.program);
        if (!ran) {
            complain(ran.error());
            if (a.as_json) print(json_line(no_health(audit::plain_text(ran.error().message()))));
            return 127;
        }
        h = *std::move(ran);
    }
    unbroken_by_writing const guard;
    auto const status = h.status;
    auto const data = audit::to_json(h.found.all);
    if (!a.as_json) std::fputs(audit::to_text(h.found.all).c_str(), stderr);
    else if (!print_health_object(h.found, a.program.empty() ? recorded::before : recorded::now))
        return status == ok ? failed : status;
    bool const asks = before || !a.write_baseline.empty();
    if (!h.found.why_not.empty()) {  // nor is it a baseline: every later run would keep it
        auto const answer = no_answer(h.found.why_not);
        return status == ok && asks ? answer : status;
    }
    auto const answer = status == ok && before ? judged_by(*before, h.found.all) : status;
    if (a.write_baseline.empty()) return answer;
    if (auto const why = why_no_baseline(h.found.all, status, answer); !why.empty()) {
        complain(fmt::format("audit health: {} is not written: {}", a.write_baseline, why));
        return answer == ok ? not_judgeable : answer;
    }
    write_text_output(a.write_baseline, base::as_bytes(base::json_text(data, 1) + "\n")).value();
    return answer;
}

}  // namespace

void add_audit_health(CLI::App& audit, std::vector<command>& commands) {
    auto* const health = add_command(audit, "health", "audit");
    auto h = std::make_shared<health_arguments>();
    health->add_option("RECORDINGS", h->recordings, "directories");
    health->add_option("--baseline", h->baseline, "what it must not fall below");
    health->add_option("--write-baseline", h->write_baseline, "file to write");
    health->add_flag("--json", h->as_json, "JSON");
    commands.push_back({health, [h, health] {
                            // What comes after '--' is a command, and nothing else is.
                            auto const marks = health->remaining();
                            if (std::ranges::find(marks, "--") != marks.end()) std::swap(h->program, h->recordings);
                            return with_object_on_failure(h->as_json, no_health, [&] { return print_health(*h); });
                        }});
}

}  // namespace kiln::cli
