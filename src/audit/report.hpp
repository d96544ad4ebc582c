// SPDX-License-Identifier: Apache-2.0
// The report of an audit, as text for a terminal, as one HTML page, as JSON and as a trace.
#pragma once

#include "audit/rules.hpp"

#include <nlohmann/json_fwd.hpp>

namespace kiln::audit {

struct report_input {
    model const& m;
    audit_result const& result;
    std::string recording;           // where it is; empty: not kept
    std::vector<std::string> files;  // that were written
};

// A part of the program: a function of the user's, by the calls that came from it.
struct stage {
    std::string name;
    std::string actual;  // "GPU", "CPU", "CPU and GPU"
    std::uint64_t kernels = 0, to_host = 0, to_device = 0;
    time_ns busy = 0, wall = 0;
    std::string left_at;  // the first line that read something; empty: it stayed on the device
};
// What a terminal may be shown: a program and its files may be called anything. UTF-8, and no control characters.
[[nodiscard]] std::string plain_text(std::string_view text);
[[nodiscard]] std::string plain_text(std::string_view text, std::size_t most);  // at most so many bytes
// "scalar reads at train.py:12", "compilers run as processes (ptxas)".
[[nodiscard]] std::string plain_of(finding const& f);
// "train.py:12", or that it is not known.
[[nodiscard]] std::string place_text(std::string const& where);
// Longest first.
[[nodiscard]] std::vector<stage> stages_of(process_model const& p);

// What a process that used no GPU compiled, by compiler; longest first.
struct compiling {
    std::uint32_t pid = 0;
    std::string program;
    first_kind kind = first_kind::nvrtc;
    std::uint64_t count = 0, failed = 0;
    time_ns wall = 0;
};
[[nodiscard]] std::vector<compiling> compiling_of(model const& m);

// The process that did most on the GPU; null where none did anything.
[[nodiscard]] process_model const* main_process(model const& m);
// Those that did at least a tenth as much, counted or by time; the others only asked for a device, or the like.
[[nodiscard]] std::vector<process_model const*> processes_at_work(model const& m);
[[nodiscard]] std::string verdict(report_input const& in);
// What keeps it from being better, if anything of weight does: the verdict and the sign-off speak of this one.
[[nodiscard]] finding const* main_finding(report_input const& in);
// Whether the host drives it: BLOCKING in the first four steps, or host gaps of half the time. Of what was not recorded nothing is known.
enum class cpu_shape : std::uint8_t { not_known, no, yes, cpu_code };
[[nodiscard]] cpu_shape shape_of(report_input const& in);
[[nodiscard]] std::string_view name_of(cpu_shape s) noexcept;  // "yes", "it is CPU code"

// The last list of the checklist.
struct sign_off {
    cpu_shape shape = cpu_shape::not_known;
    std::string forced_by;              // what makes it behave like CPU code; empty: nothing does
    std::string change;                 // a suggestion; empty: none is needed
    std::vector<finding const*> first;  // three at most, in the order in which they are worth mending
};
[[nodiscard]] sign_off sign_off_of(report_input const& in);
// Whether a finding might be worse than it is called, because the steady state was short.
[[nodiscard]] bool is_short_for(report_input const& in);

// At most 45 lines.
[[nodiscard]] std::string to_text(report_input const& in);
[[nodiscard]] std::string to_html(report_input const& in);
[[nodiscard]] nlohmann::ordered_json to_json(report_input const& in);
// Perfetto's own protobuf.
[[nodiscard]] std::string to_perfetto(report_input const& in);

}  // namespace kiln::audit
