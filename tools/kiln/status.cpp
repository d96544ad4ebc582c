// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "base/clock.hpp"
#include "engine/status_json.hpp"
#include "past_status.hpp"

#include <algorithm>
#include <csignal>

namespace kiln::cli {

namespace {

struct status_arguments {
    std::string events;
    std::int64_t pid = 0;
    bool as_json = false;
};

// Of what was compiled: with a precompiled header made, with one used.
struct header_counts {
    std::uint64_t made = 0, reused = 0;
};

header_counts headers_of(report::event_file const& file, std::int64_t pid) {
    header_counts out;
    for (auto const& e : file.events) {
        if (e.pid != pid || e.what.kind != event_kind::compiled) continue;
        if (e.what.reason.view() == "headers-made") ++out.made;
        if (e.what.reason.view() == "headers-reused") ++out.reused;
    }
    return out;
}

struct process {
    std::int64_t pid = 0;
    bool alive = false;
    warm_status is = {};
    header_counts headers = {};
};

process look_at(report::event_file const& file, std::int64_t pid) {
    bool const alive = ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
    // The monotonic clock is the machine's, so that "since" means now for a process that lives.
    return {pid, alive, status_of(file, pid, alive ? base::now_ns() : 0), headers_of(file, pid)};
}

json describe(process const& p) {
    auto const& s = p.is;
    json units = json::array();
    for (auto const& u : s.units) units.push_back(engine_detail::to_json(u));
    return {{"pid", p.pid},
            {"alive", p.alive},
            {"submitted", s.submitted},
            {"ready", s.ready},
            {"loading", s.loading},
            {"compiling", s.compiling},
            {"queued", s.queued},
            {"failed", s.failed},
            {"cancelled", s.cancelled},
            {"deferred", s.deferred},
            {"compiled", s.compiled},
            {"headers_made", p.headers.made},
            {"headers_reused", p.headers.reused},
            {"pending", s.pending},
            {"waits", s.waits},
            {"blocked_ms", s.blocked_ms},
            {"wall_ms", s.wall_ms},
            {"units", std::move(units)}};
}

std::string in_one_line(process const& p) {
    auto const& s = p.is;
    return fmt::format(
        "process {} ({}): {} submitted, {} ready ({} compiled, {} of them with precompiled headers), {} loading, {} "
        "compiling, {} queued, {} failed; "
        "{}, {:.0f} ms blocked, {:.0f} ms in all\n",
        p.pid, p.alive ? "running" : "ended", s.submitted, s.ready, s.compiled, p.headers.reused, s.loading,
        s.compiling, s.queued, s.failed, count_of(s.waits, "wait"), s.blocked_ms, s.wall_ms);
}

void show(process const& p) {
    print(in_one_line(p));
    std::vector<std::vector<std::string>> rows{
        {"unit", "target", "state", "from", "ready ms", "compile ms", "load ms", "waits", "blocked ms", "wanted by"}};
    for (auto const& u : p.is.units) {
        auto const state = u.state == work_state::compiling || u.state == work_state::loading
                               ? fmt::format("{} {:.0f} ms", name_of(u.state), u.since_ms)
                               : std::string{name_of(u.state)};
        rows.push_back({u.name, u.target, state, u.from ? std::string{name_of(*u.from)} : "-",
                        fmt::format("{:.1f}", u.ready_ms), fmt::format("{:.0f}", u.compile_ms),
                        fmt::format("{:.2f}", u.load_ms), std::to_string(u.waits), fmt::format("{:.1f}", u.blocked_ms),
                        u.consumers});
    }
    print(table(rows));
    for (auto const& u : p.is.units) {
        if (!u.error.empty()) complain(fmt::format("{}: {}", u.name, u.error));
    }
}

// Several processes share a file: a line for each, and the sum.
void show(std::vector<process> const& all) {
    std::size_t ready = 0, compiled = 0, failed = 0, waits = 0;
    double blocked_ms = 0;
    for (auto const& p : all) {
        print(in_one_line(p));
        ready += p.is.ready;
        compiled += p.is.compiled;
        failed += p.is.failed;
        waits += p.is.waits;
        blocked_ms += p.is.blocked_ms;
    }
    print(
        fmt::format("{} processes: {} ready ({} compiled), {} failed; {} waits, {:.0f} ms blocked; --pid PID shows "
                    "the units of one\n",
                    all.size(), ready, compiled, failed, waits, blocked_ms));
}

int run(status_arguments const& a) {
    auto const file = report::read_events(a.events).value();
    auto pids = file.pids();
    if (pids.empty()) {
        complain(fmt::format("{}: no events in it yet", a.events));
        return failed;
    }
    if (a.pid != 0) {
        if (std::ranges::find(pids, a.pid) == pids.end()) {
            complain(fmt::format("{}: nothing of process {}; there are {}", a.events, a.pid, fmt::join(pids, ", ")));
            return failed;
        }
        pids = {a.pid};
    }
    std::vector<process> all;
    for (auto const pid : pids) all.push_back(look_at(file, pid));
    if (a.as_json) {
        json list = json::array();
        for (auto const& p : all) list.push_back(describe(p));
        if (all.size() == 1) print_json(list.front());
        else print_json(json{{"processes", std::move(list)}});
    } else if (all.size() == 1) show(all.front());
    else show(all);
    return ok;
}

}  // namespace

void add_status(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<status_arguments>();
    auto* const app = add_command(root, "status");
    app->add_option("EVENTS", arguments->events, "event file")->envname("KILN_EVENTS")->required();
    app->add_option("--pid", arguments->pid, "which process");
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
