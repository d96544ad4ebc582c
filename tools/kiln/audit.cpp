// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "audit_health.hpp"
#include "audit_judged.hpp"
#include "audit_lines.hpp"
#include "audit_object.hpp"
#include "base/files.hpp"

#include <stdio_ext.h>

namespace kiln::cli {

namespace {

struct audit_arguments {
    audit_run run;
    std::string html, perfetto, budget_file, fail_on, step;
    bool as_json = false, expect_gpu = false;

    [[nodiscard]] judged_how how() const { return {.step = step, .expect_gpu = expect_gpu}; }
};

audit::budget read_budget(std::string const& file) {
    if (file.empty()) return {};
    auto const text = base::read_file(file, std::size_t{1} << 20).value();
    if (!text) throw error{errc::not_found, fmt::format("{}: no such file", file)};
    auto parsed = audit::parse_budget(base::as_text(*text));
    if (!parsed) throw error{parsed.error()}.within(file);
    return *parsed;
}

bool is_judged(audit_arguments const& a) { return a.expect_gpu || !a.fail_on.empty() || !a.budget_file.empty(); }

// What the judgement comes to; ok where nothing was asked.
int judged(audit_arguments const& a, audit::budget const& b, audit::report_input const& in) {
    if (!is_judged(a)) return ok;
    bool const needs_recording = !a.fail_on.empty() || !a.budget_file.empty();
    bool const left_the_gpu = a.expect_gpu && in.result.nothing_ran;  // that is an answer
    if (!in.result.can_be_judged && !left_the_gpu && (needs_recording || !in.result.nothing_ran)) {
        complain("audit: it cannot be judged: " + audit::plain_text(in.result.why_not));
        return not_judgeable;
    }
    int out = ok;
    if (a.expect_gpu) {
        for (auto const& f : in.result.findings) {
            if (f.rule != "R01") continue;
            complain("audit: a GPU was expected: " + audit::plain_text(f.what));
            out = broken;
        }
    }
    if (left_the_gpu) return out;
    if (!a.fail_on.empty()) {
        auto const most = *audit::severity_named(a.fail_on);
        if (!in.result.findings.empty() && in.result.worst() >= most) {
            complain(fmt::format("audit: broken: the worst finding is {}", name_of(in.result.worst())));
            out = broken;
        }
    }
    for (auto const& line : audit::check(b, in)) {
        if (line.kept) continue;
        complain("audit: " + std::string{line.unknown ? "no answer: " : "broken: "} + line.text);
        if (out == ok || out == not_judgeable) out = line.unknown ? not_judgeable : broken;
    }
    return out;
}

// Who reads JSON is told there, too, why there is nothing else to read.
json no_report(std::string const& why) {
    return {{"format", "kiln-audit"}, {"version", 1},           {"verdict", "it cannot be judged: " + why},
            {"cpu_shaped", nullptr},  {"can_be_judged", false}, {"why_not", why}};
}
json no_difference(std::string const& why) { return {{"broken", nullptr}, {"why_not", why}}; }

// Writes what was asked for and tells the rest. `from` is empty where there is nothing to read: that was said.
int report_on(judged_recording const& all, std::filesystem::path const& from, audit_arguments const& a, recorded when) {
    auto const b = read_budget(a.budget_file);
    bool const is_kept = !from.empty() && (when == recorded::before || !a.run.keep.empty());
    audit::report_input in{
        .m = all.model, .result = all.result, .recording = is_kept ? from.native() : "", .files = {}};
    if (!a.html.empty()) {
        write_text_output(a.html, base::as_bytes(audit::to_html(in))).value();
        in.files.push_back(a.html);
    }
    if (!a.perfetto.empty()) {
        auto const trace = audit::to_perfetto(in);
        write_text_output(a.perfetto, base::as_bytes(trace)).value();
        if (all.model.processes.empty())
            complain(fmt::format("audit: {}: the trace is empty: nothing of a GPU was recorded", a.perfetto));
        else in.files.push_back(a.perfetto + " (open it in ui.perfetto.dev)");
    }
    if (is_kept) in.files.push_back(from.native());
    if (!from.empty()) std::fputs(audit::to_text(in).c_str(), stderr);
    if (a.as_json) print_last(audit::to_json(in), when);
    return judged(a, b, in);
}

// Before anything is run or read: the files that were asked for can be written, each by itself.
void check_outputs(audit_arguments const& a) {
    for (auto const& written : {a.html, a.perfetto})
        if (!written.empty()) check_text_output(written).value();
    if (!a.html.empty() && !a.perfetto.empty()) check_apart({a.html, a.perfetto}, {}).value();
}

int report(std::filesystem::path const& from, audit_arguments const& a) {
    check_outputs(a);
    return report_on(*read_and_judge(from, a.how(), read_budget(a.budget_file)), from, a, recorded::before);
}

// Of a program that has ended: whatever becomes of the report, how it ended is told.
int report_of_run(recording_place const& place, std::string const& about, audit_arguments const& a) {
    std::unique_ptr<judged_recording> all;
    bool is_there = true;
    std::string why;
    try {
        auto run = read_run(place, about);
        is_there = run.why_none.empty();
        if (is_there) {
            look_up_lines(place.path(), run.all);
            keep_sources(place.path(), run.all);
        }
        all = judge(std::move(run.all), a.how(), read_budget(a.budget_file));
    } catch (std::exception const& e) {
        why = audit::plain_text(e.what());
        complain("audit: no report: " + why);
    }
    try {
        if (!all && a.as_json) print_last(no_report(why), recorded::now);
        if (!all) return is_judged(a) ? not_judgeable : ok;
        return report_on(*all, is_there ? place.path() : std::filesystem::path{}, a, recorded::now);
    } catch (error const& e) {
        complain(e);
        why = audit::plain_text(e.message());
    } catch (std::exception const& e) {
        complain(e.what());
        why = audit::plain_text(e.what());
    }
    ::__fpurge(stdout);  // what nobody takes would be an error once more
    try {
        if (a.as_json) print_last(no_report(why), recorded::now);
    } catch (std::exception const&) {  // as said
        ::__fpurge(stdout);
    }
    return failed;
}

// What it will be held to can be read. Says what cannot.
bool can_judge_by(audit_arguments const& a) {
    if (!a.fail_on.empty() && !audit::severity_named(a.fail_on)) {
        complain(fmt::format("'{}' is no severity: info, low, medium, high or blocking", a.fail_on));
        return false;
    }
    try {
        (void)read_budget(a.budget_file);
    } catch (error const& e) {
        complain(e);
        return false;
    }
    return true;
}

struct audited_end {
    int status = 0;  // as waitpid gives it
    int verdict = ok;
};

// A recording that nobody keeps is gone when this comes back.
result<audited_end> run_and_report(audit_arguments const& a) {
    auto place = recording_place::make(a.run.keep).value();
    auto const ran = run_audited(a.run, place);
    if (!ran) {
        place.take_back();
        return ran.error();
    }
    place.remove_on_signals();
    unbroken_by_writing const guard;
    return audited_end{ran->status, report_of_run(place, ran->about, a)};
}

int run_program(audit_arguments const& a) {
    if (a.run.program.empty()) {
        complain("name a program: kiln audit -- PROGRAM, or a command: report, diff, health, rules");
        return misused;
    }
    if (!can_judge_by(a)) return misused;
    check_outputs(a);
    auto const ended = run_and_report(a);
    if (!ended) {
        complain(ended.error());
        if (a.as_json) print(json_line(no_report(audit::plain_text(ended.error().message()))));
        return 127;
    }
    bool const failed_itself = !WIFEXITED(ended->status) || WEXITSTATUS(ended->status) != 0;
    return failed_itself ? end_like(ended->status) : ended->verdict;
}

int print_rules(std::string const& id, bool as_checklist, bool as_json) {
    if (as_checklist) {
        json rows = json::array();
        std::string_view section;
        for (auto const& b : audit::checklist()) {
            if (as_json) {
                rows.push_back({{"section", b.section},
                                {"number", b.number},
                                {"text", b.text},
                                {"rules", b.rules},
                                {"evidence", b.evidence},
                                {"question", b.question}});
                continue;
            }
            if (section != b.section) print(fmt::format("{}{}\n", section.empty() ? "" : "\n", section = b.section));
            std::string answer{b.rules};
            if (!b.evidence.empty()) answer += fmt::format("{}report: {}", answer.empty() ? "" : "; ", b.evidence);
            if (!b.question.empty()) answer += fmt::format("{}ask: {}", answer.empty() ? "" : "; ", b.question);
            print(fmt::format("  {} {}\n      {}\n", b.number, b.text, answer));
        }
        if (as_json) print(json_line(rows));
        return ok;
    }
    json rows = json::array();
    auto const is_named = [&](std::string_view name) {
        return std::ranges::equal(name, id,
                                  [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
    };
    for (auto const& r : audit::rules()) {
        if (!id.empty() && !is_named(r.id) && !is_named(r.name)) continue;
        rows.push_back({{"id", r.id},
                        {"name", r.name},
                        {"order", name_of(r.step)},
                        {"fires", r.fires},
                        {"severity", r.level},
                        {"not_when", r.not_when},
                        {"remedy", r.remedy}});
        if (as_json) continue;
        if (id.empty()) print(fmt::format("{} {:<18} {}\n", r.id, r.name, r.fires));
        else
            print(fmt::format("{} {}\n  order     {}\n  fires     {}\n  severity  {}\n  not when  {}\n  remedy    {}\n",
                              r.id, r.name, name_of(r.step), r.fires, r.level, r.not_when.empty() ? "-" : r.not_when,
                              r.remedy));
    }
    if (rows.empty()) {
        complain(fmt::format("there is no rule '{}'; 'kiln audit rules' lists them", id));
        return misused;
    }
    if (as_json) print(json_line(rows));
    return ok;
}

int print_diff(std::string const& before, std::string const& after, bool force, bool as_json) {
    auto const a = read_and_judge(before);
    auto const b = read_and_judge(after);
    audit::report_input const one{.m = a->model, .result = a->result, .recording = before, .files = {}},
        two{.m = b->model, .result = b->result, .recording = after, .files = {}};
    // A run without the GPU can be compared with one that had it.
    bool const both_without = a->result.nothing_ran && b->result.nothing_ran;
    for (auto const* const one_of : {a.get(), b.get()}) {
        if (one_of->result.can_be_judged || (one_of->result.nothing_ran && !both_without)) continue;
        auto const why = audit::plain_text(one_of->result.why_not);
        complain("audit diff: it cannot be judged: " + why);
        if (as_json) print(json_line(no_difference(why)));
        return not_judgeable;
    }
    auto const found = audit::compare(one, two, force ? audit::strictness::any : audit::strictness::same_only);
    if (!found) {
        complain(found.error());
        if (as_json) print(json_line(no_difference(audit::plain_text(found.error().message()))));
        return misused;
    }
    if (as_json) print(json_line(audit::to_json(*found)));
    else
        for (auto const& line : found->lines) print(audit::plain_text(line) + "\n");
    return found->broken ? broken : ok;
}

}  // namespace

void add_audit(CLI::App& root, std::vector<command>& commands) {
    auto a = std::make_shared<audit_arguments>();
    auto* const app = add_command(root, "audit");
    auto const add_outputs = [a](CLI::App* to) {
        to->add_option("-o,--output", a->html, "page to write");
        to->add_option("--perfetto", a->perfetto, "trace to write");
        to->add_flag("--json", a->as_json, "the report as one line of JSON");
        to->add_option("--budget", a->budget_file, "what must be kept");
        to->add_option("--fail-on", a->fail_on, "severity");
        to->add_flag("--expect-gpu", a->expect_gpu, "a run without a kernel is broken");
        to->add_option("--step", a->step, "where a step begins");
    };
    add_outputs(app);
    app->add_option("--keep", a->run.keep, "directory for the recording");
    app->add_option("--label", a->run.label, "the reusable shape");
    app->add_option("--scale", a->run.scale, "how much work it was");
    app->add_option("--level", a->run.level, "0, 1 or 2")->check(CLI::Range(0, 2));
    app->add_option("--hook", a->run.hook, "audit or none")->check(CLI::IsMember({"audit", "none"}));
    app->add_option("PROGRAM", a->run.program, "program and its arguments");
    app->prefix_command(false);
    app->positionals_at_end();

    auto* const from_file = add_command(*app, "report", "audit");
    auto recording = std::make_shared<std::string>();
    from_file->add_option("RECORDING", *recording, "directory")->required();
    add_outputs(from_file);
    commands.push_back({from_file, [a, recording] {
                            if (!can_judge_by(*a)) return misused;
                            return with_object_on_failure(a->as_json, no_report,
                                                          [&] { return report(*recording, *a); });
                        }});

    auto* const rules = add_command(*app, "rules", "audit");
    auto id = std::make_shared<std::string>();
    auto flags = std::make_shared<std::pair<bool, bool>>();
    rules->add_option("ID", *id, "one rule");
    rules->add_flag("--checklist", flags->first, "the boxes and what answers them");
    rules->add_flag("--json", flags->second, "JSON");
    commands.push_back({rules, [id, flags] { return print_rules(*id, flags->first, flags->second); }});

    auto* const diff = add_command(*app, "diff", "audit");
    auto two = std::make_shared<std::pair<std::string, std::string>>();
    auto ways = std::make_shared<std::pair<bool, bool>>();
    diff->add_option("BEFORE", two->first, "recording")->required();
    diff->add_option("AFTER", two->second, "recording")->required();
    diff->add_flag("--force", ways->first, "of another device, command or label too");
    diff->add_flag("--json", ways->second, "JSON");
    commands.push_back({diff, [two, ways] {
                            return with_object_on_failure(ways->second, no_difference, [&] {
                                return print_diff(two->first, two->second, ways->first, ways->second);
                            });
                        }});

    add_audit_health(*app, commands);
    // The commands above come first: they are commands of this one.
    commands.push_back(
        {app, [a] { return with_object_on_failure(a->as_json, no_report, [&] { return run_program(*a); }); }});
}

}  // namespace kiln::cli
