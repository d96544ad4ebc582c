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
// "train.py:12", or that it is not known.
[[nodiscard]] std::string place_text(std::string const& where);
// "1 finding", "3 findings".
[[nodiscard]] std::string count_text(std::uint64_t count, std::string_view one);
// Longest first.
[[nodiscard]] std::vector<stage> stages_of(process_model const& p);

// The process that did most on the GPU; null where none did anything.
[[nodiscard]] process_model const* main_process(model const& m);
[[nodiscard]] std::string verdict(report_input const& in);
// What keeps it from being better, if anything of weight does: the verdict and the sign-off speak of this one.
[[nodiscard]] finding const* main_finding(report_input const& in);
// Whether the host drives it: BLOCKING in the first four steps, or host gaps of half the time.
[[nodiscard]] bool is_cpu_shaped(report_input const& in);
// Whether a finding might be worse than it is called, because the steady state was short.
[[nodiscard]] bool is_short_for(report_input const& in);

// At most 45 lines.
[[nodiscard]] std::string to_text(report_input const& in);
[[nodiscard]] std::string to_html(report_input const& in);
[[nodiscard]] nlohmann::ordered_json to_json(report_input const& in);
// Perfetto's own protobuf.
[[nodiscard]] std::string to_perfetto(report_input const& in);

}  // namespace kiln::audit
