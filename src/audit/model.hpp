// SPDX-License-Identifier: Apache-2.0
//
// What a recording means: operations on the GPU joined to the calls that queued them and the lines that called, steps, windows,
// gaps with their causes, waits with who needed them, and what was done for the first time. Plain data, made once, read by
// the rules and the reports. Times are nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include "audit/call_class.hpp"
#include "audit/correlation_map.hpp"
#include "audit/recording.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace kiln::audit {

using time_ns = std::uint64_t;
inline constexpr time_ns us = 1'000, ms = 1'000'000;
[[nodiscard]] constexpr double in_ms(time_ns t) { return static_cast<double>(t) * 1e-6; }

struct interval {
    time_ns from = 0, to = 0;
    [[nodiscard]] time_ns length() const { return to > from ? to - from : 0; }
};

enum class op_kind : std::uint8_t { kernel, copy, set };
enum class direction : std::uint8_t { none, to_device, to_host, on_device };
enum class memory_kind : std::uint8_t { unknown = 0, pageable = 1, pinned = 2, device = 3, array = 4, managed = 5 };

struct operation {
    time_ns start = 0, end = 0;
    std::uint64_t bytes = 0;
    std::uint32_t correlation = 0, stream = 0, name = 0, blocks = 0, threads = 0, shared = 0, graph = 0;
    std::int32_t call = -1;  // that queued it
    std::uint16_t registers = 0;
    op_kind kind = op_kind::kernel;
    direction way = direction::none;
    memory_kind source = memory_kind::unknown, target = memory_kind::unknown;
    bool async = true;
    [[nodiscard]] time_ns length() const { return end > start ? end - start : 0; }
};

struct call {
    time_ns start = 0, end = 0;
    std::uint32_t thread = 0, correlation = 0, status = 0, name = 0;
    call_class what = call_class::other;
    wait_class waits = wait_class::none;
    std::uint32_t stream = 0;  // of a wait; 0: not known
};

// A line of the program. 0 is "not known".
struct place {
    std::string label = "?";     // "train.py:12"; "a/utils.py:3" where there is another utils.py
    std::string file, function;  // of the first frame of the user's
    int line = 0;
    bool caller = false;  // the innermost frame is the user's: no library in between
    std::string innermost;
    std::vector<std::string> stack;
};

struct site {
    std::uint32_t place = 0;
    std::uint64_t pointer = 0, bytes = 0, hash = 0;
};

enum class gap_cause : std::uint8_t {
    first_call,
    allocation,
    sync_bubble,
    host_compute,
    host_wait,
    dependency,
    latency,
    tool,
    other
};
[[nodiscard]] std::string_view name_of(gap_cause cause) noexcept;
struct gap {
    interval when;
    gap_cause cause = gap_cause::other;
    std::uint32_t place = 0;       // of the launch that ended it
    std::int32_t after_wait = -1;  // the call that returned in it
    std::int32_t next = -1;        // operation that ended it
};

enum class consumer : std::uint8_t { read, timing, housekeeping, none };
struct wait_use {
    std::int32_t call = -1;
    consumer by = consumer::none;
    std::int32_t read = -1;  // the operation that was read
    time_ns idle = 0;        // that the GPU then had nothing to do
};
struct read_use {
    std::int32_t op = -1;
    std::int32_t wait = -1;  // in `waits`; -1: a synchronous copy, or nobody was seen waiting
    bool sure = true;
    time_ns idle = 0;
    std::uint32_t place = 0;
};

enum class first_kind : std::uint8_t {
    nvrtc,
    nvjitlink,
    nvvm,
    driver_compile,
    cache_load,
    cache_store,
    load,
    lazy,
    child,
    inferred
};
struct first_event {
    interval when;
    first_kind kind = first_kind::load;
    std::uint32_t name = 0, place = 0, thread = 0;
    std::uint64_t bytes = 0;
};

struct steps {
    std::vector<time_ns> starts;
    std::string anchor;  // "line train.py:12", "every 3 operations"; empty: none found
    [[nodiscard]] bool found() const { return !anchor.empty(); }
};

struct child_process {
    std::uint32_t pid = 0, parent = 0;
    std::string name;     // of the file
    std::string command;  // and its arguments, short; empty: not known
    interval when;
    bool is_compiler = false, is_outermost = false;
    bool is_helper = false;  // a shell, a small tool or a compiler, by its name and where it lies: no work of anybody's
    bool was_waited_for = false;  // so its end is known
    bool out_of_sight = false;    // started without what is put around a program: nothing it did is known
    process_recording const* by =
        nullptr;            // the nearest that was recorded of those it descends from; null: none is known
    bool is_apart = false;  // all that it descends from are known, and none was recorded
};

// A call of a compiler in a process that used no GPU. (Who does has them among its first events.)
struct compile_apart {
    std::uint32_t pid = 0;
    std::string program;  // as people write it; empty: not known
    std::string name;     // of what was compiled; empty: not known
    first_kind kind = first_kind::nvrtc;
    interval when;
    bool is_failed = false;
};
[[nodiscard]] std::string_view compiler_name(first_kind kind) noexcept;  // "NVRTC"

struct ledger_row {
    std::string cause;
    time_ns wall = 0;
    std::uint64_t count = 0;
    bool inferred = false;
};

struct process_model {
    process_recording const* from = nullptr;
    string_table const* strings = nullptr;
    std::uint32_t pid = 0;
    std::string program;
    std::vector<operation> ops;
    std::vector<call> calls;
    std::vector<place> places;
    std::vector<site> sites;
    correlation_map call_of, site_of;  // into calls and sites
    std::set<std::uint32_t> null_streams;
    std::unordered_map<std::uint32_t, std::uint32_t> stream_flags;
    std::string device;
    std::uint32_t multiprocessors = 0, major = 0, minor = 0, warps = 64, registers = 65536, shared_bytes = 233472;

    steps cycle;
    std::string missing_step;  // that was asked for, and nothing is called so
    std::vector<time_ns> durations;
    time_ns median = 0;
    interval steady;
    std::size_t steady_from_step = 0;
    bool settled = true;
    std::vector<interval> busy;  // whole run, joined
    time_ns steady_busy = 0;
    std::vector<gap> gaps;  // of STEADY
    std::vector<wait_use> waits;
    std::vector<read_use> reads;
    std::vector<first_event> firsts;
    std::vector<operation const*> trials;  // launches of variants that lost
    std::vector<interval> compiles;        // inside compilers' own calls
    std::vector<ledger_row> ledger;
    time_ns started = 0, begun = 0, ended = 0;
    time_ns tool = 0;        // that we cost, as far as CUPTI says
    std::uint64_t lost = 0;  // operations whose times make no sense
    bool ended_well = false;
    bool was_still_running = false;  // when the recording was read

    [[nodiscard]] std::string const& text(std::uint32_t id) const { return strings->at(id); }
    [[nodiscard]] place const& place_at(std::uint32_t id) const { return places[id < places.size() ? id : 0]; }
    [[nodiscard]] std::uint32_t place_of(std::uint32_t correlation) const;
    // Of the last call before that time, of that thread (0: of any), whose place is known: launches are only watched now and then.
    [[nodiscard]] std::uint32_t place_near(std::uint32_t thread, time_ns at) const;
    // Null where nothing is known.
    [[nodiscard]] call const* call_for(std::uint32_t correlation) const;
    [[nodiscard]] site const* site_for(std::uint32_t correlation) const;
    [[nodiscard]] time_ns span() const { return std::max<time_ns>(1, steady.length()); }
    [[nodiscard]] bool in_steady(time_ns t) const { return t >= steady.from && t < steady.to; }
    [[nodiscard]] std::size_t steady_steps() const;
    // So little of it that a share of it says little: nothing found in it is more than MEDIUM.
    [[nodiscard]] bool is_steady_short() const;
};

struct model {
    std::vector<process_model> processes;   // that have used a GPU, or tried
    std::vector<child_process> children;    // all that were seen
    std::vector<compile_apart> compiles;    // of those that used no GPU, in the order of time
    kept_sources const* sources = nullptr;  // of the recording
    bool other_profiler = false, not_recorded = false;
    std::string profiler, why_not_recorded;  // who it is, and the first reason; empty: not known
    std::uint64_t skipped_bytes = 0, missing_chunks = 0, spoilt_files = 0, records = 0, dropped = 0, discarded = 0;
    bool has_end = true;            // run.json was there, and could be read
    std::string cut_short;          // why it is not, where that is known
    bool is_hooked = true;          // children were looked at: one whose environment was emptied would be known
    std::string why_not_hooked;     // and what to do; empty: not known
    std::set<std::string> missing;  // of what a GPU needs, on the machine it ran on: libcuda.so.1, libcupti
    bool driver_asked = false;      // somebody called cuInit
    std::uint32_t driver_status = 0;
    std::map<std::string, std::string> environment;  // allow-listed, from run.json
    std::string command, label, scale, date;
    double wall_s = 0, cpu_s = 0;
    int exit_status = 0, level = 1;
    std::uint32_t runner = 0;                        // the process that started the program
    time_ns ended = 0;                               // when it had ended; 0: not known
    std::map<std::uint32_t, time_ns> still_running;  // what outlived it, and when that began; 0: not known
    // Whether it is the process of that number that outlived it, and none that got the number later.
    [[nodiscard]] bool outlived(std::uint32_t pid, time_ns began) const;
    // Of which something is known: a kernel. Copies alone are no work.
    [[nodiscard]] bool has_gpu_work() const {
        return std::ranges::any_of(processes, [](process_model const& p) {
            return std::ranges::any_of(p.ops, [](operation const& o) { return o.kind == op_kind::kernel; });
        });
    }
    [[nodiscard]] bool has_operations() const {
        return std::ranges::any_of(processes, [](process_model const& p) { return !p.ops.empty(); });
    }
};

struct model_options {
    std::string step;  // a line or a name to take as the beginning of a step
};

// Kernels, copies, sets, calls and waits, which are nearly all of a long recording, move into the model; the rest stays in `from`, which the
// model refers to.
[[nodiscard]] model model_of(recording& from, model_options const& how = {});

// As people write it: demangled, without arguments and template arguments, at most so long.
[[nodiscard]] std::string short_kernel_name(std::string const& name, std::size_t most = 48);

// "python3 train.py --fast" of "/opt/venv/bin/python3 /home/ann/train.py --fast": whole words, as many as fit.
[[nodiscard]] std::string short_command(std::string_view command, std::size_t most = 60);

// ---- parts, each in a file of its own
[[nodiscard]] std::vector<interval> joined(std::vector<interval> all);
// The same of what is sorted by when it starts.
template <class Sorted>
[[nodiscard]] std::vector<interval> joined_in_order(Sorted const& all) {
    std::vector<interval> out;
    std::size_t count = 0;
    time_ns last = 0;
    for (auto const& i : all) {
        count += count == 0 || i.start > last ? 1 : 0;
        last = std::max(last, i.end);
    }
    out.reserve(count);
    for (auto const& i : all) {
        if (!out.empty() && i.start <= out.back().to) out.back().to = std::max(out.back().to, i.end);
        else out.push_back({i.start, i.end});
    }
    return out;
}
[[nodiscard]] time_ns overlap(interval with, std::vector<interval> const& sorted);
[[nodiscard]] std::string base_name(std::string_view path);
// Of a stack as recordings have it: whose line it is.
[[nodiscard]] place place_from(std::string_view stack);
// Files of one name in several folders get as much of their folders into their labels as it takes to tell them apart.
void tell_apart(std::vector<place>& places);
// Whether people may call it so: "utils.py:3" is also what they call "a/utils.py:3".
[[nodiscard]] bool is_called(std::string_view label, std::string_view name) noexcept;
// The smallest lag at which a sequence repeats over its last half; 0: none.
[[nodiscard]] std::size_t period_of(std::vector<std::uint32_t> const& symbols);
// Whether CUPTI counts that time as its own.
[[nodiscard]] bool is_of_the_tool(format::overhead_record const& o) noexcept;
void find_steps(process_model& p, model_options const& how);
void find_windows(process_model& p);
void find_gaps(process_model& p);
void find_consumers(process_model& p);
void find_trials(process_model& p);
void make_ledger(process_model& p);

}  // namespace kiln::audit
