// SPDX-License-Identifier: Apache-2.0
#include "audit/model.hpp"

#include "audit/seen_processes.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace kiln::audit {

namespace {

direction way_of(std::uint8_t kind) {
    switch (kind) {
        case 1:
        case 3: return direction::to_device;
        case 2:
        case 4: return direction::to_host;
        case 5:
        case 6:
        case 7:
        case 8:
        case 10: return direction::on_device;
        default: return direction::none;
    }
}
memory_kind memory_of(std::uint8_t kind) { return kind <= 5 ? static_cast<memory_kind>(kind) : memory_kind::unknown; }

template <class Records>
void let_go(Records& all) {
    Records{}.swap(all);
}

// A grid may have more blocks than the number holds.
std::uint32_t blocks_of(format::kernel_record const& k) {
    constexpr std::uint64_t most = 0xffff'ffffu;
    auto const plane = std::min(most, std::uint64_t{k.grid_x} * std::max(1u, k.grid_y));
    return static_cast<std::uint32_t>(std::min(most, plane * std::max(1u, k.grid_z)));
}

void take_operations(process_model& p, process_recording& r) {
    p.ops.reserve(r.kernels.size() + r.copies.size() + r.sets.size());
    r.kernels.consume([&](format::kernel_record const& k) {
        operation o{.start = k.start, .end = k.end, .correlation = k.correlation, .stream = k.stream, .name = k.name};
        o.blocks = blocks_of(k);
        o.threads =
            std::uint32_t{k.block_x} * std::max<std::uint32_t>(1, k.block_y) * std::max<std::uint32_t>(1, k.block_z);
        o.shared = k.static_shared + k.dynamic_shared;
        o.graph = k.graph;
        o.registers = k.registers;
        p.ops.push_back(o);
    });
    for (auto const& c : r.copies) {
        operation o{.start = c.start, .end = c.end, .bytes = c.bytes, .correlation = c.correlation, .stream = c.stream};
        o.graph = c.graph;
        o.kind = op_kind::copy;
        o.way = way_of(c.direction);
        o.source = memory_of(c.source);
        o.target = memory_of(c.target);
        o.async = (c.flags & 1) != 0;
        p.ops.push_back(o);
    }
    for (auto const& s : r.sets) {
        operation o{.start = s.start, .end = s.end, .bytes = s.bytes, .correlation = s.correlation, .stream = s.stream};
        o.kind = op_kind::set;
        p.ops.push_back(o);
    }
    let_go(r.copies);
    let_go(r.sets);
    std::ranges::sort(p.ops, [](operation const& a, operation const& b) {
        return std::pair{a.start, a.end} < std::pair{b.start, b.end};
    });
}

// A driver call inside a runtime call of the same class is the same call.
void take_calls(process_model& p, process_recording& r) {
    std::unordered_map<std::uint32_t, call_class> classes;
    auto& all = p.calls;
    all.reserve(r.calls.size());
    r.calls.consume([&](format::call_record const& c) {
        auto const [at, fresh] = classes.try_emplace(c.name, call_class::other);
        if (fresh) at->second = class_of(p.text(c.name));
        call out{.start = c.start, .end = std::max(c.start, c.end), .thread = c.thread, .correlation = c.correlation};
        out.status = c.status;
        out.name = c.name;
        out.what = at->second;
        if (out.what == call_class::wait) out.waits = wait_of(p.text(c.name));
        all.push_back(out);
    });
    std::ranges::sort(all, [](call const& a, call const& b) {
        return std::pair{a.start, b.end} < std::pair{b.start, a.end};
    });
    std::unordered_map<std::uint32_t, call> open;  // the last outer call of each thread
    std::size_t kept = 0;
    for (auto const& c : all) {
        auto& outer = open[c.thread];
        bool const is_inside = c.start >= outer.start && c.end <= outer.end && outer.end > 0;
        if (is_inside && c.what == outer.what) continue;
        if (!is_inside) outer = c;
        all[kept++] = c;
    }
    all.resize(kept);
    std::unordered_map<std::uint32_t, std::uint32_t> wait_streams;
    for (auto const& w : r.waits) wait_streams[w.correlation] = w.stream;
    let_go(r.waits);
    p.call_of = map_for(p.calls);
    for (std::size_t i = 0; i < p.calls.size(); ++i) {
        auto& c = p.calls[i];
        p.call_of.insert(c.correlation, static_cast<std::int32_t>(i));
        if (c.waits == wait_class::none) continue;
        if (auto const at = wait_streams.find(c.correlation); at != wait_streams.end()) c.stream = at->second;
    }
    for (auto& o : p.ops) o.call = p.call_of.find(o.correlation);
}

// CUPTI gives no time where it could not take one. What begins before the recorder, or ends long after the process, would hide all the others.
void drop_senseless(process_model& p) {
    constexpr time_ns day = 86'400'000 * ms, slack = 1000 * ms;
    auto last = p.ended;
    if (last == 0)  // it was killed
        for (auto const& c : p.calls) last = std::max(last, c.end);
    p.lost = std::erase_if(p.ops, [&](operation const& o) {
        bool const is_late = last != 0 && o.end > last && o.end - last > day;
        return o.start == 0 || o.end < o.start || o.start + slack < p.begun || is_late;
    });
}

void take_sites(process_model& p) {
    std::unordered_map<std::uint32_t, std::uint32_t> known;  // string to place
    p.places.resize(1);
    p.site_of = map_for(p.from->sites);
    for (auto const& s : p.from->sites) {
        if (p.site_of.insert(s.correlation, static_cast<std::int32_t>(p.sites.size()))) p.sites.emplace_back();
        auto& to = p.sites[static_cast<std::size_t>(p.site_of.find(s.correlation))];
        if (s.stack != 0) {
            auto const [at, fresh] = known.try_emplace(s.stack, static_cast<std::uint32_t>(p.places.size()));
            if (fresh) p.places.push_back(place_from(p.text(s.stack)));
            to.place = at->second;
        }
        if (s.pointer != 0) to.pointer = s.pointer;
        if (s.bytes != 0) to.bytes = s.bytes;
        if (s.hash != 0) to.hash = s.hash;
    }
    tell_apart(p.places);
}

void take_devices(process_model& p) {
    for (auto const& d : p.from->devices) {
        if (!p.device.empty()) continue;
        p.device = p.text(d.name);
        p.multiprocessors = d.multiprocessors;
        p.major = d.major;
        p.minor = d.minor;
        if (d.most_warps > 0) p.warps = d.most_warps;
        if (d.most_registers > 0) p.registers = d.most_registers;
        if (d.shared_bytes > 0) p.shared_bytes = d.shared_bytes;
    }
    if (p.multiprocessors == 0) p.multiprocessors = 132;
    for (auto const& c : p.from->contexts) p.null_streams.insert(c.null_stream);
    for (auto const& s : p.from->streams) p.stream_flags[s.id] = s.flag;
}

// nullopt: no compiler's own call.
std::optional<first_kind> kind_of(format::compile_record const& c) {
    switch (static_cast<format::compiler>(c.what)) {
        case format::compiler::nvrtc: return first_kind::nvrtc;
        case format::compiler::nvjitlink: return first_kind::nvjitlink;
        case format::compiler::nvvm: return first_kind::nvvm;
        default: return std::nullopt;
    }
}

void take_firsts(process_model& p, std::vector<child_process> const& children) {
    auto const& r = *p.from;
    auto const add = [&](interval when, first_kind kind, std::uint32_t name, std::uint32_t thread) -> first_event& {
        p.firsts.push_back(
            {.when = when, .kind = kind, .name = name, .place = p.place_near(thread, when.to), .thread = thread});
        return p.firsts.back();
    };
    for (auto const& c : r.compiles) {
        auto const kind = kind_of(c);
        if (!kind) continue;
        interval const when{c.start, c.end};
        auto& e = add(when, *kind, c.name, c.thread);
        if (*kind == first_kind::nvrtc) e.bytes = c.bytes;
        p.compiles.push_back(when);
    }
    p.compiles = joined(std::move(p.compiles));
    for (auto const& j : r.jits) {
        interval const when{j.start, j.end};
        if (overlap(when, p.compiles) > 0) continue;  // NVRTC's own cache speaks through the same records
        if (j.operation == 3) add(when, first_kind::driver_compile, 0, j.thread);
        else if (j.operation == 1) add(when, first_kind::cache_load, 0, j.thread);
        else if (j.operation == 2) add(when, first_kind::cache_store, 0, j.thread);
    }
    for (auto const& c : p.calls) {
        if ((c.what != call_class::load && c.what != call_class::link) ||
            p.text(c.name).find("GetFunction") != std::string::npos)
            continue;
        auto& e = add({c.start, c.end}, first_kind::load, c.name, c.thread);
        if (auto const* const at = p.site_for(c.correlation)) {
            e.bytes = at->bytes;
            if (at->place != 0) e.place = at->place;
        }
    }
    for (auto const& o : r.overheads) {
        if (o.what == 4 || o.what == 5) add({o.start, o.end}, first_kind::lazy, 0, 0);
        else if (is_of_the_tool(o)) p.tool += interval{o.start, o.end}.length();
    }
    for (auto const& c : children)
        if (c.is_outermost && c.is_compiler) add(c.when, first_kind::child, 0, 0);
    std::ranges::sort(p.firsts, {}, [](first_event const& e) { return std::pair{e.when.from, e.when.to}; });
}

void take_about(recording const& from, model& to) {
    to.spoilt_files = from.spoilt_files;
    to.has_end = from.has_end;
    if (from.about.empty()) return;
    auto const about = nlohmann::json::parse(from.about, nullptr, false);
    if (!about.is_object()) {
        ++to.spoilt_files;
        to.has_end = false;
        return;
    }
    auto const text = [&](char const* key) {
        return about.contains(key) && about[key].is_string() ? about[key].get<std::string>() : std::string{};
    };
    to.label = text("label");
    to.scale = text("scale");
    to.date = text("date");
    if (about.contains("command") && about["command"].is_array())
        for (auto const& word : about["command"])
            to.command +=
                (to.command.empty() ? "" : " ") + (word.is_string() ? word.get<std::string>() : std::string{"?"});
    if (about.contains("environment") && about["environment"].is_object())
        for (auto const& [name, value] : about["environment"].items())
            if (value.is_string()) to.environment[name] = value.get<std::string>();
    auto const number = [&](char const* key) {
        return about.contains(key) && about[key].is_number() ? about[key].get<double>() : 0.0;
    };
    to.wall_s = number("wall_s");
    to.cpu_s = number("cpu_s");
    to.exit_status = static_cast<int>(number("exit_status"));
    if (about.contains("level")) to.level = static_cast<int>(number("level"));
    to.runner = static_cast<std::uint32_t>(number("runner"));
    to.ended = static_cast<time_ns>(number("ended_ns"));
    auto const list = [&](char const* key) {
        return about.contains(key) && about[key].is_array() ? about[key] : nlohmann::json::array();
    };
    auto const pids = list("still_running"), began = list("still_running_began_ns");
    for (std::size_t i = 0; i < pids.size(); ++i)
        if (pids[i].is_number_unsigned())
            to.still_running[pids[i].get<std::uint32_t>()] =
                i < began.size() && began[i].is_number_unsigned() ? began[i].get<time_ns>() : 0;
    for (auto const& name : list("missing"))
        if (name.is_string()) to.missing.insert(name.get<std::string>());
    to.is_hooked = text("hook") != "none";
    to.why_not_hooked = text("why_no_hook");
    to.cut_short = text("cut_short");
    if (auto const why = text("not_recorded"); !why.empty()) {
        to.not_recorded = true;
        to.why_not_recorded = why;
    }
}

void was_not_recorded(model& to, std::string const& why) {
    to.not_recorded = true;
    if (to.why_not_recorded.empty()) to.why_not_recorded = why;
}

std::string command_of(std::vector<child_process> const& all, std::uint32_t pid) {
    auto const at = std::ranges::find_if(all, [&](child_process const& c) { return c.pid == pid; });
    if (at == all.end()) return {};
    return at->command.empty() ? at->name : at->command;
}

void take_compiles_apart(recording const& from, model& to) {
    for (auto const& r : from.processes) {
        if (r.recorded()) continue;
        for (auto const& c : r.compiles) {
            auto const kind = kind_of(c);
            if (!kind) continue;
            std::string_view const text = from.strings.at(c.name);  // "saxpy.cu\t--gpu-architecture=sm_90"
            to.compiles.push_back({.pid = r.pid,
                                   .program = command_of(to.children, r.pid),
                                   .name = std::string{text.substr(0, text.find('\t'))},
                                   .kind = *kind,
                                   .when = {c.start, c.end},
                                   .is_failed = c.status != 0});
        }
    }
    std::ranges::sort(to.compiles, {}, [](compile_apart const& c) { return std::pair{c.when.from, c.when.to}; });
}

process_model process_from(recording const& all, process_recording& r, std::vector<child_process> const& children,
                           model_options const& how) {
    process_model p;
    p.from = &r;
    p.strings = &all.strings;
    p.pid = r.about.pid;
    p.program = p.text(r.about.program);
    p.started = r.about.started;
    p.begun = r.about.begun;
    for (auto const& e : r.ends) {
        p.ended = e.time;
        p.ended_well = true;
    }
    take_devices(p);
    take_operations(p, r);
    take_calls(p, r);
    drop_senseless(p);
    take_sites(p);
    std::vector<child_process> mine;
    for (auto const& c : children)
        if (c.by != nullptr ? c.by == &r : !c.is_apart && c.when.from >= p.started) mine.push_back(c);
    take_firsts(p, mine);
    p.busy = joined_in_order(p.ops);
    if (p.ended == 0) {
        p.ended = p.ops.empty() ? p.begun : p.busy.back().to;
        if (!p.calls.empty()) p.ended = std::max(p.ended, p.calls.back().end);
    }
    find_trials(p);
    find_steps(p, how);
    find_windows(p);
    find_gaps(p);
    find_consumers(p);
    make_ledger(p);
    return p;
}

}  // namespace

std::string_view name_of(gap_cause cause) noexcept {
    switch (cause) {
        case gap_cause::first_call: return "first call";
        case gap_cause::allocation: return "allocation";
        case gap_cause::sync_bubble: return "sync bubble";
        case gap_cause::host_compute: return "host compute";
        case gap_cause::host_wait: return "host wait";
        case gap_cause::dependency: return "stream dependency";
        case gap_cause::latency: return "launch latency";
        case gap_cause::tool: return "tool";
        case gap_cause::other: return "unknown cause";
    }
    return "";
}

std::string_view compiler_name(first_kind kind) noexcept {
    return kind == first_kind::nvrtc ? "NVRTC" : kind == first_kind::nvjitlink ? "nvJitLink" : "NVVM";
}

bool model::outlived(std::uint32_t pid, time_ns began) const {
    constexpr time_ns resolution = 50 * ms;  // of when a process began, and of what it tells first
    auto const at = still_running.find(pid);
    return at != still_running.end() && (at->second == 0 || began == 0 || at->second <= began + resolution);
}

std::uint32_t process_model::place_of(std::uint32_t correlation) const {
    auto const* const at = site_for(correlation);
    return at == nullptr ? 0 : at->place;
}
std::uint32_t process_model::place_near(std::uint32_t thread, time_ns at) const {
    auto i = std::ranges::upper_bound(calls, at, {}, &call::start);
    for (int tries = 0; i != calls.begin() && tries < 200; ++tries) {
        --i;
        if (thread != 0 && i->thread != thread) continue;
        if (auto const found = place_of(i->correlation); found != 0) return found;
    }
    return 0;
}
call const* process_model::call_for(std::uint32_t correlation) const {
    auto const at = call_of.find(correlation);
    return at < 0 ? nullptr : &calls[static_cast<std::size_t>(at)];
}
site const* process_model::site_for(std::uint32_t correlation) const {
    auto const at = site_of.find(correlation);
    return at < 0 ? nullptr : &sites[static_cast<std::size_t>(at)];
}
bool process_model::is_steady_short() const {
    return steady.length() < 500 * ms || (cycle.found() && steady_steps() < 8);
}
std::size_t process_model::steady_steps() const {
    return cycle.found() && cycle.starts.size() > steady_from_step ? cycle.starts.size() - steady_from_step : 0;
}

std::string short_kernel_name(std::string const& name, std::size_t most) {
    std::unique_ptr<char, void (*)(void*)> const plain{abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr),
                                                       std::free};
    std::string_view const whole = plain ? std::string_view{plain.get()} : std::string_view{name};
    std::string out;
    int depth = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        char const c = whole[i];
        if (c == '<' && !out.empty()) ++depth;
        else if (c == '>' && depth > 0) --depth;
        else if (c == '(' && depth == 0 && !out.empty() && whole.substr(i, 11) != "(anonymous ") break;
        else if (depth == 0) out += c;
    }
    // Libraries of NVIDIA's put their version and every architecture into the name.
    for (auto const* const begin : {"CUB_", "THRUST_", "_V_"})
        if (auto const at = out.find(begin); at != out.npos)
            if (auto const end = out.find("::", at); end != out.npos && (at == 0 || out[at - 1] == ':'))
                out.erase(at, end + 2 - at);
    if (auto const space = out.rfind(' '); space != out.npos && plain && out.find("(anonymous") == out.npos)
        out.erase(0, space + 1);
    if (auto const colons = out.rfind("::"); colons != out.npos && out.size() > most) out.erase(0, colons + 2);
    return out.substr(0, most);
}

std::string short_command(std::string_view command, std::size_t most) {
    std::string out;
    while (!command.empty()) {
        auto const space = command.find(' ');
        auto const word = command.substr(0, space);
        command.remove_prefix(space == command.npos ? command.size() : space + 1);
        if (word.empty()) continue;
        auto const shown = word.starts_with('/') ? base_name(word) : std::string{word};
        if (out.empty()) out = shown.substr(0, most);
        else if (out.size() + 1 + shown.size() <= most) out += " " + shown;
        else break;
    }
    return out;
}

bool is_of_the_tool(format::overhead_record const& o) noexcept {
    return o.what == 1 || o.what == 2 || o.what == 3 || o.what == 7 || o.what == 8;
}

std::vector<interval> joined(std::vector<interval> all) {
    std::ranges::sort(all, {}, &interval::from);
    std::vector<interval> out;
    for (auto const& i : all) {
        if (!out.empty() && i.from <= out.back().to) out.back().to = std::max(out.back().to, i.to);
        else out.push_back(i);
    }
    return out;
}

time_ns overlap(interval with, std::vector<interval> const& sorted) {
    time_ns out = 0;
    auto at = std::ranges::upper_bound(sorted, with.from, {}, &interval::to);
    for (; at != sorted.end() && at->from < with.to; ++at)
        out += interval{std::max(at->from, with.from), std::min(at->to, with.to)}.length();
    return out;
}

model model_of(recording& from, model_options const& how) {
    model out;
    out.sources = &from.sources;
    take_about(from, out);
    out.children = processes_seen(from, out.runner);
    for (auto& r : from.processes) {
        out.skipped_bytes += r.skipped_bytes;
        out.missing_chunks += r.missing_chunks;
        out.records += r.kernels.size() + r.copies.size() + r.sets.size() + r.calls.size() + r.waits.size();
        for (auto const& c : r.compiles) {
            if (static_cast<format::compiler>(c.what) != format::compiler::driver_init) continue;
            out.driver_asked = true;
            out.driver_status = c.status;
            if (c.status != 0 || r.recorded()) continue;
            was_not_recorded(
                out, "a process got a GPU and left no recording: no room for it, or its environment was cleared");
        }
        for (auto const& n : r.notes) {
            auto const kind = static_cast<format::note_kind>(n.what);
            if (kind == format::note_kind::not_recording) was_not_recorded(out, from.strings.at(n.text));
            if (kind != format::note_kind::other_profiler) continue;
            out.other_profiler = true;
            if (out.profiler.empty()) out.profiler = from.strings.at(n.text);
        }
        for (auto const& e : r.ends) {
            out.dropped += e.dropped;
            out.discarded += e.discarded;
        }
        if (r.recorded()) {
            out.driver_asked = true;
            if (r.about.level == 0)
                was_not_recorded(out, "level 0 records no kernels, so it cannot be told whether any ran");
            out.processes.push_back(process_from(from, r, out.children, how));
            out.records -= out.processes.back().lost;
            out.dropped += out.processes.back().lost;
            out.processes.back().was_still_running = out.outlived(r.about.pid, r.about.started);
        }
    }
    take_compiles_apart(from, out);
    return out;
}

}  // namespace kiln::audit
