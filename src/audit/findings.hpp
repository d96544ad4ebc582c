// SPDX-License-Identifier: Apache-2.0
// What an audit says: findings with the numbers that made them, what was let pass and why, and what was looked at and is fine.
#pragma once

#include "audit/model.hpp"

namespace kiln::audit {

enum class severity : std::uint8_t { info, low, medium, high, blocking };
enum class confidence : std::uint8_t { certain, likely, hint };
[[nodiscard]] std::string_view name_of(severity s) noexcept;    // "BLOCKING"
[[nodiscard]] std::string_view name_of(confidence c) noexcept;  // "certain"
[[nodiscard]] std::optional<severity> severity_named(std::string_view name) noexcept;

// In which order a person should care. A BLOCKING finding of an early one folds the later ones.
enum class audit_step : std::uint8_t { first_call, ran, stayed, waits, batching, launches, evidence };
[[nodiscard]] std::string_view name_of(audit_step s) noexcept;

// "1 finding", "3 findings"; with `many` where an s does not do.
[[nodiscard]] std::string count_text(std::uint64_t count, std::string_view one, std::string_view many = {});
// "4 bytes", "1.5 MiB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

struct finding {
    std::string rule;
    std::string what;   // one sentence with its numbers
    std::string where;  // a line, or what is known of the place
    std::string arithmetic;
    std::string remedy = {};  // empty: the rule's
    severity level = severity::low;
    confidence sure = confidence::certain;
    std::uint64_t count = 0;  // in the whole run
    double cost = 0;          // of the window, at most; 0: not known
    double per_step = 0;
    bool structural = false;  // in nearly every step
    bool caller = false;      // the user's own line, not a library's
    bool is_cold = false;
    bool is_later = false;  // folded under an earlier BLOCKING one
    std::uint32_t pid = 0;
    std::uint32_t place = 0;
    std::vector<std::string> stack;
};

struct exemption {
    std::string rule, where, why;
    std::uint64_t count = 0;
    bool is_allowed = false;  // by the project, not by the rule
};

// A rule that had nothing to look at: that it found nothing says nothing.
struct rested_rule {
    std::string rule, why;
};

// What a project lets pass: findings of a rule at a line ("solver.py:12") or in a function ("solver.py:read_count").
struct allowance {
    std::string rule, place, reason;
};

struct rule_options {
    bool expect_gpu = false;
    std::map<std::string, double> numbers = {};  // "R50.share"
    std::vector<allowance> allowed = {};
};

struct audit_result {
    std::vector<finding> findings;  // worst first
    std::vector<exemption> exempt;
    std::vector<std::string> good;  // looked at and fine
    std::vector<rested_rule> resting;
    bool can_be_judged = true;
    bool nothing_ran = false;  // that is why it cannot: it was recorded, and there was nothing
    std::string why_not;
    [[nodiscard]] severity worst() const;
};

}  // namespace kiln::audit
