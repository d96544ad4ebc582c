// SPDX-License-Identifier: Apache-2.0
// Whether all this is evidence: what is known of the recording itself, and of what bent it (R90 to R94).
#include "audit/losses.hpp"
#include "audit/rules.hpp"

#include <algorithm>

namespace kiln::audit::detail {

void tool_cost(judge& j) {
    auto const& p = j.p;
    // What it costs once, at the beginning, is a row of the ledger; what costs on is what bends the numbers.
    time_ns tool = 0;
    for (auto const& o : p.from->overheads)
        if (is_of_the_tool(o))
            tool += interval{std::max(o.start, p.steady.from), std::min(o.end, p.steady.to)}.length();
    bool const has_window = p.cycle.found() && p.steady.length() > 0;
    auto const wall = has_window ? p.steady.length() : p.ended - std::min(p.ended, p.begun);
    if (!has_window) tool = p.tool;
    auto const share = static_cast<double>(tool) / static_cast<double>(std::max<time_ns>(1, wall));
    if (share < 0.05 || tool < 100 * ms) return;
    finding f = j.at("R90", 0);
    f.where = "this tool";
    f.count = 1;
    f.what = fmt::format("CUPTI says that it cost {:.0f} ms, {:.0f} % of the {}", in_ms(tool), share * 100,
                         has_window ? "steady state" : "time since cuInit");
    f.level = severity::medium;
    j.find(std::move(f));
}

void lost_records(judge& j) {
    auto const& m = j.m;
    auto const lost = m.dropped;
    auto const& losses = j.losses;
    std::size_t cut = 0;
    for (auto const& p : m.processes) cut += p.ended_well ? 0 : 1;
    if (cut > 0 && losses.empty())
        j.good(fmt::format("{} ended without a word; at most the last second is missing",
                           count_text(cut, "process", "processes")));
    bool const many = has_lost_many(m);
    if (!is_cut_short(m, losses)) return;
    finding f = j.at("R91", 0);
    f.where = "the recording";
    f.count = std::max<std::uint64_t>({1, lost, losses.size()});
    auto const say = [&](std::string const& what, std::string_view remedy) {
        f.what += (f.what.empty() ? "" : "; ") + what;
        if (f.remedy.empty()) f.remedy = remedy;
    };
    constexpr std::string_view shorter = "audit a shorter run", again = "record it again";
    for (std::size_t i = 0; i < std::min<std::size_t>(3, losses.size()); ++i)
        say(losses[i],
            "see that the process named is recorded: let it keep its environment, and end before the program");
    if (losses.size() > 3) f.what += fmt::format("; and {} more", losses.size() - 3);
    if (!m.cut_short.empty())
        say("the recording could not be written to its end (" + m.cut_short + ")",
            "make room where it goes (TMPDIR, --keep) and for files to be opened (ulimit -n), and audit again");
    else if (!m.has_end)
        say("there is no run.json that can be read: the recording was cut short, or this is one file of it",
            "name the whole folder of a recording that came to its end");
    if (many) say(fmt::format("{} of {} records lost", lost, m.records + lost), shorter);
    if (m.discarded > 0) say(fmt::format("{} bytes discarded for lack of room", m.discarded), shorter);
    if (m.skipped_bytes > 0) say(fmt::format("{} bytes unreadable", m.skipped_bytes), again);
    if (m.missing_chunks > 0)
        say(fmt::format("{} missing in the middle of it", count_text(m.missing_chunks, "piece")), again);
    if (auto const files = m.spoilt_files - (m.has_end ? 0 : std::min<std::uint64_t>(1, m.spoilt_files)); files > 0)
        say(fmt::format("{} that could take no more, or {} no recording", count_text(files, "file"),
                        files == 1 ? "is" : "are"),
            again);
    f.level = severity::medium;
    j.find(std::move(f));
}

// Once, of the process that did most, however many there are.
void no_steady(judge& j) {
    auto const& p = j.p;
    auto const is_without = [](process_model const& one) {
        return !one.ops.empty() && (!one.cycle.found() || !one.settled || !one.missing_step.empty());
    };
    auto const at_work =
        std::ranges::count_if(j.m.processes, [](process_model const& one) { return !one.ops.empty(); });
    auto const without = std::ranges::count_if(j.m.processes, is_without);
    if (without == 0) return;
    // Where that one has a steady state, of the first that has none.
    auto const& of = is_without(p) ? p : *std::ranges::find_if(j.m.processes, is_without);
    finding f = j.at("R92", 0);
    f.where = "the steps";
    f.count = static_cast<std::uint64_t>(without);
    f.pid = of.pid;
    if (!of.cycle.found()) f.what = "no steps were found: rules that count per step rest";
    else if (!of.missing_step.empty())
        f.what = fmt::format("no step begins with '{}': they were counted by {}", of.missing_step, of.cycle.anchor);
    else f.what = "it never settled: something is still done for the first time in the second half";
    if (at_work > 1) f.what += fmt::format(" (in {} of {} processes)", without, at_work);
    f.level = severity::info;
    j.find(std::move(f));
}

void disturbed(judge& j) {
    auto const& m = j.m;
    constexpr std::string_view without = "audit without it";
    struct disturbance {
        std::string what;
        std::string_view remedy;
        severity level = severity::medium;
    };
    std::vector<disturbance> all;
    auto const known = [](std::string const& text) { return text.empty() ? std::string{"?"} : text; };
    auto const add = [&](std::string what) { all.push_back({std::move(what), without}); };
    auto const set_to = [&](char const* name, char const* value) {
        auto const at = m.environment.find(name);
        return at != m.environment.end() && at->second == value;
    };
    if (m.other_profiler)
        all.push_back({"another profiler holds CUPTI (" + known(m.profiler) + ")", without, severity::high});
    if (m.not_recorded)
        all.push_back({"it was not recorded (" + known(m.why_not_recorded) + ")",
                       m.level == 0 ? "audit with --level 1"
                                    : "mend what keeps it from being recorded, which is named, and audit again",
                       severity::high});
    if (set_to("CUDA_LAUNCH_BLOCKING", "1")) add("CUDA_LAUNCH_BLOCKING=1: every launch waits");
    if (set_to("CUDA_CACHE_DISABLE", "1")) add("CUDA_CACHE_DISABLE=1: the driver compiles every time");
    if (set_to("CUDA_MODULE_LOADING", "EAGER")) add("CUDA_MODULE_LOADING=EAGER: everything is loaded at the start");
    if (set_to("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")) add("PYTORCH_NO_CUDA_MEMORY_CACHING=1: the allocator is off");
    for (auto const& [what, remedy, level] : all) {
        finding f = j.at("R93", 0);
        f.where = "the environment";
        f.count = 1;
        f.what = what;
        f.remedy = remedy;
        f.is_cold = true;
        f.level = level;
        j.find(std::move(f));
    }
}

void unfinished_timing(judge& j) {
    auto const& p = j.p;
    // By when they were queued: of a range only those in it are looked at, as there may be a range for each launch.
    struct queued {
        time_ns at, end;
    };
    std::vector<queued> work;
    for (auto const& o : p.ops)
        if (o.call >= 0) work.push_back({p.calls[static_cast<std::size_t>(o.call)].start, o.end});
    std::ranges::sort(work, {}, [](queued const& w) { return std::pair{w.at, w.end}; });
    // Nor is each of them: ranges may lie in one another, and many be queued in each.
    constexpr std::size_t many = 512;
    std::vector<time_ns> latest((work.size() + many - 1) / many);
    for (std::size_t i = 0; i < work.size(); ++i) latest[i / many] = std::max(latest[i / many], work[i].end);
    auto const first_after = [&](time_ns then, std::size_t from, std::size_t end) {
        while (from < end && work[from].end <= then) {
            bool const skips = from % many == 0 && from + many <= end && latest[from / many] <= then;
            from += skips ? many : 1;
        }
        return from;
    };
    for (auto const& r : p.from->ranges) {
        if (r.end == 0 || r.end < r.start) continue;
        auto const first = std::ranges::lower_bound(work, r.start, {}, &queued::at);
        auto const end = std::ranges::upper_bound(first, work.end(), r.end, {}, &queued::at);
        auto const last = work.begin() + first_after(r.end + 100 * us, first - work.begin(), end - work.begin());
        if (last == end) continue;
        finding f = j.at("R94", 0);
        f.where = p.text(r.name);
        f.count = 1;
        f.what = fmt::format("the range '{}' ends {:.1f} ms before work that was queued in it", p.text(r.name),
                             in_ms(last->end - r.end));
        f.level = severity::low;
        return j.find(std::move(f));
    }
}

}  // namespace kiln::audit::detail
