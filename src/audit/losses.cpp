// SPDX-License-Identifier: Apache-2.0
#include "audit/losses.hpp"

#include "audit/report.hpp"
#include "audit/system_tools.hpp"

#include <algorithm>

namespace kiln::audit {

namespace {

// The recorder writes every second while its process lives.
constexpr time_ns flush_period = 1'000 * ms;

// How long a process lived on after what is known of it last, where it ended without a word and its end is known.
time_ns unseen_end(model const& m, process_model const& p) {
    if (p.ended_well) return 0;
    auto last = p.ended;
    for (auto const& c : p.from->cpu) last = std::max(last, c.time);
    time_ns end = m.runner != 0 && p.from->about.parent == m.runner ? m.ended : 0;
    for (auto const& c : m.children) {
        bool const began_later = c.when.from > last && c.when.length() != 0;  // another with its number
        if (c.pid != p.pid || !c.was_waited_for || began_later) continue;
        if (c.when.to >= last && (end < last || c.when.to < end)) end = c.when.to;
    }
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

bool has_lost_many(model const& m) { return static_cast<double>(m.dropped) > 0.001 * static_cast<double>(m.records); }

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
            out.push_back(fmt::format(
                "{} ({} {}) was not recorded: its environment was emptied or changed (KILN_AUDIT_DIR, "
                "CUDA_INJECTION64_PATH), or its privileges are raised",
                plain_text(c.name, 60), c.pid != 0 ? "process" : "started by process", c.pid != 0 ? c.pid : c.parent));
    return out;
}

bool is_cut_short(model const& m, std::span<std::string const> losses) {
    return has_lost_many(m) || m.discarded != 0 || m.skipped_bytes != 0 || m.missing_chunks != 0 ||
           m.spoilt_files != 0 || !m.has_end || !losses.empty();
}

std::vector<std::string> doubts_of(model const& m) {
    std::vector<std::string> out;
    if (!m.is_hooked)
        out.push_back(fmt::format("without the companion ({}) processes whose environment was emptied are not seen",
                                  m.why_not_hooked.empty() ? "--hook none" : m.why_not_hooked));
    std::set<std::uint32_t> named;
    for (auto const& c : m.children) {
        if (!m.outlived(c.pid, c.when.from) || c.was_waited_for || !may_use_gpu(c)) continue;
        if (!named.insert(c.pid).second) continue;
        out.push_back(fmt::format("{} (process {}) outlived the program: what it does later is not seen",
                                  c.name.empty() ? "a fork" : plain_text(c.name, 60), c.pid));
    }
    return out;
}

}  // namespace kiln::audit
