// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "audit/judgement.hpp"
#include "audit_lines.hpp"
#include "audit_run.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

#include <array>
#include <fcntl.h>
#include <stdio_ext.h>
#include <unistd.h>

namespace kiln::cli {

namespace {

// One line, also to readers who end lines at U+0085, U+2028 and U+2029 (Python's splitlines): they stand in strings alone, where they may
// be written so.
template <class Json>
std::string json_line(Json const& data) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> ends{
        {{"\xC2\x85", "\\u0085"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}}};
    auto out = base::json_text(data);
    for (auto const& [end, written] : ends)
        for (auto at = out.find(end); at != out.npos; at = out.find(end, at)) out.replace(at, end.size(), written);
    return out + "\n";
}

constexpr int broken = 3;         // judged, and not kept
constexpr int not_judgeable = 4;  // judged, and no answer: CI never passes because nothing was recorded

struct audit_arguments {
    audit_run run;
    std::string html, perfetto, budget_file, fail_on, step;
    bool as_json = false, expect_gpu = false;
};

struct loaded {
    audit::recording recording;
    audit::model model;
    audit::audit_result result;
};

// A recording that was made just now has no lines for its native frames yet.
enum class recorded { now, before };

// The recording outlives the model: the model points into it.
std::unique_ptr<loaded> judge(audit::recording recording, audit_arguments const& a, audit::budget const& b) {
    auto out = std::make_unique<loaded>();
    out->recording = std::move(recording);
    out->model = audit::model_of(out->recording, {.step = a.step});
    out->result = audit::audit(out->model, b.apply({.expect_gpu = a.expect_gpu, .numbers = {}}));
    audit::allow(b, out->result);
    return out;
}

std::unique_ptr<loaded> load(std::filesystem::path const& from, audit_arguments const& a, audit::budget const& b) {
    return judge(audit::read_recording(from).value(), a, b);
}

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
        if (in.result.worst() >= most) {
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

// Whether what the program wrote last was a whole line. Of a pipe nobody knows.
bool is_at_line_start() {
    auto const at = ::lseek(STDOUT_FILENO, 0, SEEK_CUR);
    if (at <= 0) return at == 0;
    auto const file = base::open_file("/proc/self/fd/1", O_RDONLY | O_NONBLOCK);
    char last = 0;
    return file && ::pread(file->get(), &last, 1, at - 1) == 1 && last == '\n';
}

// The program owns standard output; our object is its last line.
template <class Json>
void print_last(Json const& data, recorded when) {
    print((when == recorded::now && !is_at_line_start() ? "\n" : "") + json_line(data));
    finish_output();
}

// Who reads JSON is told there, too, why there is nothing else to read.
json no_report(std::string const& why) {
    return {{"format", "kiln-audit"}, {"version", 1},           {"verdict", "it cannot be judged: " + why},
            {"cpu_shaped", nullptr},  {"can_be_judged", false}, {"why_not", why}};
}
json no_difference(std::string const& why) { return {{"broken", nullptr}, {"why_not", why}}; }

// What goes wrong is told at the end of the command line.
template <class Work, class Object>
int with_object_on_failure(bool as_json, Object const& object, Work const& work) {
    try {
        return work();
    } catch (std::exception const& e) {
        if (as_json) print(json_line(object(audit::plain_text(e.what()))));
        throw;
    }
}

// Writes what was asked for and tells the rest. `from` is empty where there is nothing to read: that was said.
int report_on(loaded const& all, std::filesystem::path const& from, audit_arguments const& a, recorded when) {
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
    return report_on(*load(from, a, read_budget(a.budget_file)), from, a, recorded::before);
}

void check_place(recording_place const& place) {
    if (place.was_replaced())
        throw error{errc::not_found, place.path().native() + ": the program put something else in its place"};
}

// What was recorded just now. Where that went away, or there never was a place for it, all that is known is how the program was run, and why
// there is no more: that is a report as well, for who reads the object or the page.
struct recorded_run {
    audit::recording all;
    std::string why_none;
};
recorded_run read_run(recording_place const& place, std::string const& about) {
    recorded_run out{.all = {}, .why_none = place.why_none()};
    if (out.why_none.empty()) {
        try {
            check_place(place);
            out.all = audit::read_recording(place.path()).value();
            if (out.all.has_end) return out;
        } catch (error const& e) {
            complain("audit: no report: " + e.message());
            out.why_none = e.message();
        }
    }
    out.all.about = about;  // it could not be written, or is gone again
    if (out.why_none.empty()) return out;
    auto known = json::parse(about, nullptr, false);
    if (!known.is_object()) known = json::object();
    known["not_recorded"] = out.why_none;
    out.all = {};
    out.all.about = base::json_text(known);
    return out;
}

// Of a program that has ended: whatever becomes of the report, how it ended is told.
int report_of_run(recording_place const& place, std::string const& about, audit_arguments const& a) {
    std::unique_ptr<loaded> all;
    bool is_there = true;
    std::string why;
    try {
        auto run = read_run(place, about);
        is_there = run.why_none.empty();
        if (is_there) {
            look_up_lines(place.path(), run.all);
            keep_sources(place.path(), run.all);
        }
        all = judge(std::move(run.all), a, read_budget(a.budget_file));
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
    } catch (std::exception const& e) {
        complain(e.what());
    }
    ::__fpurge(stdout);  // what nobody takes would be an error once more
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
    auto const a = load(before, {}, {});
    auto const b = load(after, {}, {});
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

struct health_arguments {
    std::vector<std::string> recordings, program;
    std::string baseline, write_baseline;
    bool as_json = false;
};

// What a test suite is held to; a baseline of old says nothing of what it was measured.
struct health_baseline {
    double share = 0;
    std::string of;
};
result<health_baseline> read_baseline(std::string const& file) {
    KILN_TRY(auto const text, base::read_file(file));
    auto const data = text ? json::parse(base::as_text(*text), nullptr, false) : json{};
    if (!data.is_object() || !data.contains("gpu_share") || !data["gpu_share"].is_number())
        return fail(errc::invalid_argument, "{}: no baseline; --write-baseline makes one", file);
    health_baseline out{.share = data["gpu_share"].get<double>(), .of = {}};
    if (!(out.share >= 0 && out.share <= 1))
        return fail(errc::invalid_argument, "{}: no baseline: {} is no share of 0 to 1", file, out.share);
    if (data.contains("of") && data["of"].is_string()) out.of = data["of"].get<std::string>();
    return out;
}

int no_answer(std::string const& why) {
    complain("audit health: it cannot be judged: " + audit::plain_text(why));
    return not_judgeable;
}

int judged_by(health_baseline const& before, audit::health const& h) {
    auto const of = audit::to_json(h)["of"].get<std::string>();
    if (!before.of.empty() && before.of != of)
        return no_answer(fmt::format("the baseline is a share of {}, and this run has {}", before.of, of));
    if (h.gpu_share() >= before.share - 0.001) {
        if (h.gpu > 0) return ok;
        return no_answer("nothing ran on a GPU, and by the baseline nothing did before; write it where there is one");
    }
    complain(fmt::format("audit health: broken: the GPU share fell from {:.2f} % to {:.2f} %", before.share * 100,
                         h.gpu_share() * 100));
    return broken;
}

struct gathered_health {
    audit::health all;
    std::string why_not;  // empty: it can be judged
};

void add_health(loaded const& all, gathered_health& to) {
    if (!all.result.can_be_judged && !all.result.nothing_ran) to.why_not = all.result.why_not;
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
        add_health(*load(one, {}, {}), out);
    }
    return out;
}

// One that its program took away is done without.
gathered_health gather_health(recording_place const& place, std::string const& about) {
    gathered_health out;
    auto run = read_run(place, about);
    if (run.why_none.empty()) add_health(*judge(std::move(run.all), {}, {}), out);
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

int print_health(health_arguments const& a) {
    if (a.recordings.empty() && a.program.empty()) {
        complain("name recordings, or a command after --");
        return misused;
    }
    std::optional<health_baseline> before;
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
    if (!a.write_baseline.empty()) {
        if (h.found.all.gpu == 0) {
            complain(
                fmt::format("audit health: {} is not written: nothing ran on a GPU, and every later run would keep it",
                            a.write_baseline));
            return status == ok ? not_judgeable : status;
        }
        write_text_output(a.write_baseline, base::as_bytes(base::json_text(data, 1) + "\n")).value();
    }
    return status == ok && before ? judged_by(*before, h.found.all) : status;
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

    auto* const health = add_command(*app, "health", "audit");
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
    // The commands above come first: they are commands of this one.
    commands.push_back(
        {app, [a] { return with_object_on_failure(a->as_json, no_report, [&] { return run_program(*a); }); }});
}

}  // namespace kiln::cli
