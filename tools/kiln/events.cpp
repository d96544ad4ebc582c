// SPDX-License-Identifier: Apache-2.0
// Reads a file of events: what ran where, what fell back, what moved, who waited.
#include "command.hpp"
#include "report/event_file.hpp"

#include <algorithm>
#include <map>

namespace kiln::cli {

namespace {

struct arguments {
    std::string file;
    bool summary = false;
    std::vector<std::string> kinds;
    bool json = false;
};

struct tally {
    std::uint64_t times = 0;
    std::int64_t value = 0;  // bytes or items
    std::int64_t ns = 0;
};

struct summary {
    std::uint64_t events = 0, unreadable = 0;
    std::map<std::string, std::uint64_t> kinds;
    std::map<std::string, tally> dispatches;  // by place
    std::map<std::string, tally> operations;  // "scan on gpu"
    std::map<std::string, tally> fallbacks;   // by reason
    std::map<std::string, tally> transfers;   // "to-host by buffer::to_host_sync in select"
    std::map<std::string, tally> waits_for_device, allocations, rewrites;
    std::map<std::string, tally> compiles;  // by what precompiled headers did for them
    tally blocked;                          // callers that waited for a compile
    tally plans_waited;                     // plans wait on purpose, for many things at once
    tally fleet_waited;                     // for servers: a part of what callers and plans waited

    void add(event const& e) {
        auto const text = [](std::string_view t) { return std::string{t}; };
        auto const count = [&](tally& t) {
            ++t.times;
            // A hostile file may hold any number.
            if (__builtin_add_overflow(t.value, e.value, &t.value)) t.value = 0;
            t.ns += e.duration_ns;
        };
        auto const target = text(e.target), reason = text(e.reason), unit = text(e.unit);
        auto const within = unit.empty() ? std::string{} : " in " + unit;
        ++events;
        ++kinds[text(name_of(e.kind))];
        switch (e.kind) {
            case event_kind::dispatched:
                count(dispatches[target]);
                count(operations[unit + " on " + target]);
                break;
            case event_kind::fell_back: count(fallbacks[reason]); break;
            case event_kind::transferred: count(transfers[target + " by " + reason + within]); break;
            case event_kind::synchronised: count(waits_for_device[reason + within]); break;
            case event_kind::allocated: count(allocations[reason + within]); break;
            case event_kind::rewritten: count(rewrites[reason]); break;
            case event_kind::compiled: count(compiles[reason.starts_with("headers-") ? reason : "headers-read"]); break;
            case event_kind::waited:
                count(reason.starts_with("plan")               ? plans_waited
                      : reason == "fleet" || reason == "lease" ? fleet_waited
                                                               : blocked);
                break;
            default: break;
        }
    }
    [[nodiscard]] double gpu_share() const {
        std::uint64_t all = 0, gpu = 0;
        for (auto const& [place, t] : dispatches) {
            all += t.times;
            if (place == "gpu") gpu += t.times;
        }
        return all == 0 ? 0 : static_cast<double>(gpu) / static_cast<double>(all);
    }
};

json to_json(std::map<std::string, tally> const& all) {
    json rows = json::array();
    for (auto const& [what, t] : all)
        rows.push_back(
            {{"what", what}, {"times", t.times}, {"value", t.value}, {"ms", static_cast<double>(t.ns) * 1e-6}});
    return rows;
}

void section(std::string_view title, std::map<std::string, tally> const& all, bool are_bytes) {
    if (all.empty()) return;
    print(fmt::format("\n{}\n", title));
    std::vector<std::pair<std::string, tally>> sorted{all.begin(), all.end()};
    std::ranges::stable_sort(sorted, [](auto const& a, auto const& b) { return a.second.times > b.second.times; });
    for (auto const& [what, t] : sorted) {
        auto const value = t.value < 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(t.value);
        print(
            fmt::format("  {:>8}  {:>12}  {}\n", t.times, are_bytes ? bytes_text(value) : std::to_string(value), what));
    }
}

void show(summary const& s) {
    std::uint64_t dispatched = 0;
    for (auto const& [place, t] : s.dispatches) dispatched += t.times;
    print(fmt::format("{} events", s.events));
    if (s.unreadable > 0) print(fmt::format(", {} unreadable lines", s.unreadable));
    print(fmt::format("\ndispatches   {}, {:.1f} % on the GPU\n", dispatched, 100 * s.gpu_share()));
    std::uint64_t fell = 0;
    for (auto const& [reason, t] : s.fallbacks) fell += t.times;
    print(fmt::format("fallbacks    {}\n", fell));
    print(fmt::format("blocked      {}, {:.1f} ms\n", count_of(s.blocked.times, "caller"),
                      static_cast<double>(s.blocked.ns) * 1e-6));
    if (s.plans_waited.times > 0) {
        print(fmt::format("plans        waited {} times, {:.1f} ms\n", s.plans_waited.times,
                          static_cast<double>(s.plans_waited.ns) * 1e-6));
    }
    if (s.fleet_waited.times > 0) {
        print(fmt::format("fleet        waited for {} times, {:.1f} ms, in what is above\n", s.fleet_waited.times,
                          static_cast<double>(s.fleet_waited.ns) * 1e-6));
    }
    section("operations (times, items)", s.operations, false);
    section("fallbacks by reason (times, items)", s.fallbacks, false);
    section("transfers by site (times, bytes)", s.transfers, true);
    section("waits for the device by site (times)", s.waits_for_device, false);
    section("allocations by site (times, bytes)", s.allocations, true);
    section("rewrites (times)", s.rewrites, false);
    section("compiles by what became of their headers (times, bytes)", s.compiles, true);
}

// A word that is no kind would choose nothing, and look like a file without such events.
std::string unknown_kind(std::vector<std::string> const& words) {
    std::vector<std::string_view> all;
    for (auto kind = event_kind::demanded; kind <= event_kind::note;
         kind = static_cast<event_kind>(static_cast<int>(kind) + 1))
        all.push_back(name_of(kind));
    for (auto const& word : words)
        if (std::ranges::find(all, word) == all.end())
            return fmt::format("'{}' is no kind of event; there are {}", word, fmt::join(all, ", "));
    return {};
}

int events(arguments const& args) {
    if (auto const wrong = unknown_kind(args.kinds); !wrong.empty()) {
        complain(wrong);
        return misused;
    }
    auto const file = report::read_events(args.file).value();
    if (file.events.empty()) {
        complain(fmt::format("{}: no events in it; a program writes them with KILN_EVENTS={}", args.file, args.file));
        return failed;
    }
    summary s;
    s.unreadable = file.bad_lines;  // the last line of a process that was killed, or of another version
    json chosen = json::array();
    for (auto const& e : file.events) {
        if (!args.kinds.empty() && std::ranges::find(args.kinds, name_of(e.what.kind)) == args.kinds.end()) continue;
        s.add(e.what);
        if (args.summary) continue;
        if (args.json) chosen.push_back(json::parse(file.line_of(e)));
        else print(std::string{file.line_of(e)} + "\n");
    }
    if (!args.summary) {
        if (args.json) print_json(chosen);
        return ok;
    }
    if (!args.json) {
        show(s);
        return ok;
    }
    print_json({{"events", s.events},
                {"unreadable", s.unreadable},
                {"kinds", s.kinds},
                {"gpu_share", s.gpu_share()},
                {"operations", to_json(s.operations)},
                {"fallbacks", to_json(s.fallbacks)},
                {"transfers", to_json(s.transfers)},
                {"waits_for_device", to_json(s.waits_for_device)},
                {"allocations", to_json(s.allocations)},
                {"rewrites", to_json(s.rewrites)},
                {"compiles", to_json(s.compiles)},
                {"blocked", s.blocked.times},
                {"blocked_ms", static_cast<double>(s.blocked.ns) * 1e-6},
                {"plans_waited", s.plans_waited.times},
                {"plans_waited_ms", static_cast<double>(s.plans_waited.ns) * 1e-6},
                {"fleet_waited", s.fleet_waited.times},
                {"fleet_waited_ms", static_cast<double>(s.fleet_waited.ns) * 1e-6}});
    return ok;
}

}  // namespace

void add_events(CLI::App& root, std::vector<command>& commands) {
    auto* const app = add_command(root, "events");
    auto const args = std::make_shared<arguments>();
    app->add_option("file", args->file)->required();
    app->add_flag("--summary", args->summary);
    app->add_option("--kind", args->kinds)->delimiter(',');
    app->add_flag("--json", args->json);
    commands.push_back({app, [args] { return events(*args); }});
}

}  // namespace kiln::cli
