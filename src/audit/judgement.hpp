// SPDX-License-Identifier: Apache-2.0
// What CI asks of an audit: a budget kept or broken, and a run compared with another.
#pragma once

#include "audit/report.hpp"

namespace kiln::audit {

struct budget_line {
    enum class kind : std::uint8_t { at_most, at_least, number, allow } what = kind::at_most;
    int line = 0;
    std::string text = {};                // as it stands in the file
    std::string name = {};                // "R22.per_step", "severity"; of allow: the rule
    double value = 0;                     // shares as fractions; of severity: its rank
    std::string place = {}, reason = {};  // of allow
};

struct budget {
    std::vector<budget_line> lines;
    // Numbers of rules that the project sets, and what it allows.
    [[nodiscard]] rule_options apply(rule_options to) const;
};

// errc::invalid_argument with the line and, for a name nobody knows, the nearest one.
[[nodiscard]] result<budget> parse_budget(std::string_view text);

struct verdict_line {
    bool kept = true;
    bool unknown = false;  // it could not be measured
    std::string text;      // the line and what was measured
};
[[nodiscard]] std::vector<verdict_line> check(budget const& b, report_input const& in);

struct difference {
    struct measure {
        std::string what, unit;
        double before = 0, after = 0;
        bool worse = false;
    };
    bool broken = false;
    bool cold_again = false;                  // R17
    int status_before = 0, status_after = 0;  // how the program ended
    std::string device_before, device_after;  // empty: nothing ran on a GPU
    std::vector<measure> measures, ledger;
    std::vector<std::string> new_kernels, gone_kernels;
    std::vector<finding> new_findings, gone_findings;  // of MEDIUM and worse
    std::vector<std::string> lines;                    // all of it, for people
};
[[nodiscard]] nlohmann::ordered_json to_json(difference const& d);
enum class strictness : std::uint8_t { same_only, any };
// errc::invalid_argument where they are of another device, command, label or level, and `how` cares.
[[nodiscard]] result<difference> compare(report_input const& before, report_input const& after, strictness how);

}  // namespace kiln::audit
