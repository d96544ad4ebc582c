// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "base/clock.hpp"
#include "warmup/event_file.hpp"

#include <algorithm>
#include <csignal>

namespace kiln::cli {

namespace {

struct status_arguments {
    std::string events;
    std::int64_t pid = 0;
    bool as_json = false;
};

json describe(unit_status const& u) {
    return {{"name", u.name},
            {"target", u.target},
            {"state", name_of(u.state)},
            {"priority", name_of(u.how)},
            {"from", u.from ? json(name_of(*u.from)) : json()},
            {"miss", u.miss},
            {"consumers", u.consumers},
            {"submitted_ms", u.submitted_ms},
            {"since_ms", u.since_ms},
            {"ready_ms", u.ready_ms},
            {"compile_ms", u.compile_ms},
            {"load_ms", u.load_ms},
            {"bytes", u.bytes},
            {"waits", u.waits},
            {"blocked_ms", u.blocked_ms},
            {"error", u.error}};
}

int run(status_arguments const& a) {
    auto const file = warmup::read_events(a.events).value();
    auto const pids = file.pids();
    if (pids.empty()) {
        complain(fmt::format("{}: no events in it yet", a.events));
        return failed;
    }
    // Several processes may share a file: the last one that began, unless told.
    auto const pid = a.pid != 0 ? a.pid : pids.back();
    if (std::ranges::find(pids, pid) == pids.end()) {
        complain(fmt::format("{}: nothing of process {}; there are {}", a.events, pid, fmt::join(pids, ", ")));
        return failed;
    }
    bool const alive = ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
    // The monotonic clock is the machine's, so that "since" means now for a process that lives.
    auto const s = warmup::status_of(file, pid, alive ? base::now_ns() : 0);
    if (a.as_json) {
        json units = json::array();
        for (auto const& u : s.units) units.push_back(describe(u));
        print_json(json{{"pid", pid},
                        {"alive", alive},
                        {"submitted", s.submitted},
                        {"ready", s.ready},
                        {"loading", s.loading},
                        {"compiling", s.compiling},
                        {"queued", s.queued},
                        {"failed", s.failed},
                        {"cancelled", s.cancelled},
                        {"deferred", s.deferred},
                        {"compiled", s.compiled},
                        {"pending", s.pending},
                        {"waits", s.waits},
                        {"blocked_ms", s.blocked_ms},
                        {"wall_ms", s.wall_ms},
                        {"units", std::move(units)}});
        return ok;
    }
    print(fmt::format(
        "process {} ({}): {} submitted, {} ready ({} compiled), {} loading, {} compiling, {} queued, {} failed; "
        "{} waits, {:.0f} ms blocked, {:.0f} ms in all\n",
        pid, alive ? "running" : "ended", s.submitted, s.ready, s.compiled, s.loading, s.compiling, s.queued, s.failed,
        s.waits, s.blocked_ms, s.wall_ms));
    std::vector<std::vector<std::string>> rows{
        {"unit", "target", "state", "from", "ready ms", "compile ms", "load ms", "waits", "blocked ms", "wanted by"}};
    for (auto const& u : s.units) {
        auto const state = u.state == work_state::compiling || u.state == work_state::loading
                               ? fmt::format("{} {:.0f} ms", name_of(u.state), u.since_ms)
                               : std::string{name_of(u.state)};
        rows.push_back({u.name, u.target, state, u.from ? std::string{name_of(*u.from)} : "-",
                        fmt::format("{:.1f}", u.ready_ms), fmt::format("{:.0f}", u.compile_ms),
                        fmt::format("{:.2f}", u.load_ms), std::to_string(u.waits), fmt::format("{:.1f}", u.blocked_ms),
                        u.consumers});
    }
    print(table(rows));
    for (auto const& u : s.units) {
        if (!u.error.empty()) complain(fmt::format("{}: {}", u.name, u.error));
    }
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
