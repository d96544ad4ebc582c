// SPDX-License-Identifier: Apache-2.0
#include "audit/losses.hpp"

#include "audit/system_tools.hpp"

#include <algorithm>

namespace kiln::audit {

namespace {

// The recorder writes every second while its process lives.
constexpr time_ns flush_period = 1'000 * ms;

// How long a process lived on after what is known of it last, where it ended without a word and its end is known.
time_ns unseen_end(model const& m, process_model const& p) {
    if (p.ended_well) return 0;
    time_ns end = m.runner != 0 && p.from->about.parent == m.runner ? m.ended : 0;
    for (auto const& c : m.children)
        if (c.pid == p.pid && c.was_waited_for) end = c.when.to;
    auto last = p.ended;
    for (auto const& c : p.from->cpu) last = std::max(last, c.time);
    return end > last ? end - last : 0;
}

// From its start to what is known of it last.
time_ns life_of(process_model const& p) { return interval{p.started != 0 ? p.started : p.begun, p.ended}.length(); }

// Of a process that could not be, it is said why; that it left nothing is no news then.
bool was_recorded(process_model const& p) {
    return p.from->about.level > 0 && std::ranges::none_of(p.from->notes, [](format::note_record const& n) {
               auto const what = static_cast<format::note_kind>(n.what);
               return what == format::note_kind::not_recording || what == format::note_kind::other_profiler;
           });
}

// Compilers and small tools are at home on the CPU.
bool may_use_gpu(child_process const& c) { return !c.is_compiler && !is_small_tool(c.name); }

}  // namespace

std::vector<std::string> losses_of(model const& m) {
    std::vector<std::string> out;
    for (auto const& p : m.processes) {
        if (p.was_still_running && !p.ended_well)
            out.push_back(fmt::format("process {} was still at work when the program had ended", p.pid));
        else if (!was_recorded(p)) continue;
        else if (!p.ended_well && p.ops.empty())
            out.push_back(fmt::format(
                "process {} got a GPU, ended without a word and left nothing: it ended at once, or could write no more",
                p.pid));
        else if (auto const unseen = unseen_end(m, p); unseen > 2 * flush_period)
            out.push_back(fmt::format("the last {:.1f} s of process {} are missing: it could write no more",
                                      static_cast<double>(unseen) * 1e-9, p.pid));
        else if (!p.ended_well && life_of(p) < 10 * flush_period)
            out.push_back(fmt::format("process {} ended without a word: up to a second of its {:.1f} s may be missing",
                                      p.pid, static_cast<double>(life_of(p)) * 1e-9));
    }
    for (auto const& c : m.children)
        if (c.out_of_sight && may_use_gpu(c))
            out.push_back(
                fmt::format("{} ({} {}) was not recorded: its environment was emptied, or its privileges are raised",
                            c.name, c.pid != 0 ? "process" : "started by process", c.pid != 0 ? c.pid : c.parent));
    return out;
}

}  // namespace kiln::audit
