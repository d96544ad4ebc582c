// SPDX-License-Identifier: Apache-2.0
//
// The rules: each a function from the model to findings and a row in one table, from which `kiln audit rules`, the checklist and the
// documentation are made.
#pragma once

#include "audit/findings.hpp"

#include <algorithm>
#include <map>
#include <span>

namespace kiln::audit {

// What a rule sees, and where it puts what it has to say.
class judge {
public:
    judge(model const& all, process_model const& one, std::span<std::string const> missing, rule_options const& how,
          audit_result& to)
        : m{all}, p{one}, losses{missing}, options{how}, out_{to} {}

    model const& m;
    process_model const& p;
    std::span<std::string const> losses;  // losses_of(m)
    rule_options const& options;

    // A number of a rule that a project may set in its budget file.
    [[nodiscard]] double number(std::string const& name, double otherwise) const;
    void find(finding f);
    void exempt(std::string rule, std::uint64_t count, std::uint32_t place, std::string why);
    void good(std::string text);
    [[nodiscard]] audit_result const& so_far() const { return out_; }

    [[nodiscard]] double share(time_ns t) const { return static_cast<double>(t) / static_cast<double>(p.span()); }
    [[nodiscard]] double per_step(std::uint64_t count) const;
    // Whether something that happened at these times is structural: in nearly every step, of all or of the steady state.
    enum class step_range : std::uint8_t { all, steady };
    [[nodiscard]] bool in_most_steps(std::span<time_ns const> times, step_range of) const;
    // By cost, as most rules have it.
    [[nodiscard]] severity by_cost(double cost, bool structural, std::uint64_t count) const;
    // By the time of first calls.
    [[nodiscard]] severity by_cold(time_ns t) const;
    [[nodiscard]] finding at(std::string rule, std::uint32_t place) const;

private:
    audit_result& out_;
};

enum class scope : std::uint8_t { process, tree };
// Without which a rule has nothing to look at.
enum class needs : std::uint8_t { nothing, steady, steps };

struct rule {
    std::string_view id, name;
    std::string_view plain;  // what it is about, in a sentence: "but PLAIN at a.py:3 keeps it from scaling"
    audit_step step;
    std::string_view fires, level, not_when, remedy;
    void (*apply)(judge&);  // null: `kiln audit diff` judges it
    scope of = scope::process;
    needs what = needs::nothing;
};

[[nodiscard]] std::span<rule const> rules() noexcept;
[[nodiscard]] rule const* find_rule(std::string_view id) noexcept;
// The finding's own, or the rule's.
[[nodiscard]] std::string_view remedy_of(finding const& f) noexcept;

[[nodiscard]] audit_result audit(model const& m, rule_options const& how = {});

// ---- one box of the checklist of sections
struct box {
    std::string_view section;
    int number;
    std::string_view text;
    std::string_view rules;     // "R01 R07"; empty: none
    std::string_view evidence;  // what the report fills in; empty: nothing
    std::string_view question;  // put to a person; empty: none
};
[[nodiscard]] std::span<box const> checklist() noexcept;

namespace detail {
// By the file they are in.
void no_gpu(judge&), token_use(judge&), fallback(judge&), wrong_arch(judge&), precision(judge&), demoted(judge&),
    said_and_ran(judge&);
void nvrtc(judge&), driver_jit(judge&), loading(judge&), context(judge&), child(judge&), trials(judge&),
    compile_in_loop(judge&);
void needless_wait(judge&), device_wait(judge&), scalar_read(judge&), bulk_read(judge&), sync_copy(judge&),
    null_stream(judge&), cosmetic_streams(judge&);
void pageable_async(judge&), small_copies(judge&), round_trip(judge&), re_upload(judge&), device_copies(judge&),
    managed(judge&);
void churn(judge&), trimming(judge&), alloc_retry(judge&), growing_output(judge&);
void tiny_launches(judge&), small_grid(judge&), block_shape(judge&), occupancy(judge&), per_item(judge&),
    graph_candidate(judge&);
void gap_cause_rule(judge&), coverage(judge&), value_drives_loop(judge&), host_phase(judge&);
void tool_cost(judge&), lost_records(judge&), no_steady(judge&), disturbed(judge&), unfinished_timing(judge&);

// Where most of something is, of what lies at several lines: that one is to blame, and not the last.
class blamed_place {
public:
    void add(std::uint32_t place, double weight) {
        if (place != 0) by_place_[place] += weight;
    }
    // 0: none is known.
    [[nodiscard]] std::uint32_t heaviest() const {
        auto const at = std::ranges::max_element(by_place_, {}, [](auto const& k) { return k.second; });
        return at == by_place_.end() ? 0 : at->first;
    }

private:
    std::map<std::uint32_t, double> by_place_;
};

// Occupancy by theory: the share of a multiprocessor's warps, and what limits it.
struct occupancy_answer {
    double share = 1;
    std::string_view limit;
};
[[nodiscard]] occupancy_answer theoretical_occupancy(process_model const& p, operation const& o);
// Idle time after waits that the rules about waits let pass, and did not find at fault elsewhere.
[[nodiscard]] time_ns idle_let_pass(process_model const& p, audit_result const& r);
// How the host's share of the steady window is made up.
[[nodiscard]] time_ns gap_time(process_model const& p, std::initializer_list<gap_cause> causes);
}  // namespace detail

}  // namespace kiln::audit
