// SPDX-License-Identifier: Apache-2.0
// Whether it is CPU code on a GPU, what makes it so, and what to change first.
#include "audit/report.hpp"

#include <algorithm>
#include <array>

namespace kiln::audit {

namespace {

constexpr std::size_t most_to_mend = 3;
constexpr std::array host_causes{gap_cause::host_compute, gap_cause::host_wait, gap_cause::sync_bubble,
                                 gap_cause::allocation};

bool is_of_the_path(finding const& f) {
    auto const step = find_rule(f.rule)->step;
    return step >= audit_step::ran && step <= audit_step::batching;
}

// What keeps the GPU idle most of the time, and the line before which more of that is than before any other.
struct host_gap {
    gap_cause cause = gap_cause::other;
    time_ns time = 0;
    std::string where = "?";
    bool is_most = false;  // of all of it
};
host_gap largest_host_gap(process_model const& p, audit_result const& r) {
    host_gap out;
    for (auto const cause : host_causes) {
        auto time = detail::gap_time(p, {cause});
        if (cause == gap_cause::sync_bubble) time -= std::min(time, detail::idle_let_pass(p, r));
        if (time > out.time) out = {cause, time};
    }
    std::map<std::string, time_ns> places;
    time_ns all = 0;
    for (auto const& g : p.gaps) {
        if (g.cause != out.cause) continue;
        places[p.place_at(g.place).label] += g.when.length();
        all += g.when.length();
    }
    if (places.empty()) return out;
    auto const most = std::ranges::max_element(places, {}, [](auto const& k) { return k.second; });
    out.where = most->first;
    out.is_most = 2 * most->second > all;
    return out;
}

// Of what is in nearly every step the costliest; R60 only names the gap itself.
finding const* structural_finding(audit_result const& r, std::string const& rather_at) {
    finding const* out = nullptr;
    auto const worth = [&](finding const& f) { return std::pair{f.where == rather_at, f.cost}; };
    for (auto const& f : r.findings) {
        auto const step = find_rule(f.rule)->step;
        if (!f.structural || f.rule == "R60" || step == audit_step::first_call || step == audit_step::evidence)
            continue;
        if (out == nullptr || worth(f) > worth(*out)) out = &f;
    }
    return out;
}

std::string suggestion(finding const& f) { return fmt::format("{}: {}", plain_of(f), remedy_of(f)); }

void say_what_forces(report_input const& in, sign_off& to) {
    if (auto const* const f = main_finding(in); f != nullptr && f->level == severity::blocking && is_of_the_path(*f)) {
        to.forced_by = plain_of(*f);
        to.change = remedy_of(*f);
        return;
    }
    auto const& p = *main_process(in.m);
    auto const gap = largest_host_gap(p, in.result);
    to.forced_by = fmt::format("{} for {:.0f} % of the steady state", name_of(gap.cause),
                               100 * static_cast<double>(gap.time) / static_cast<double>(p.span()));
    if (gap.where != "?")
        to.forced_by += (gap.is_most ? ", most of it before " : ", the largest part of it before ") + gap.where;
    auto const* const f = structural_finding(in.result, gap.where);
    to.change = f != nullptr ? suggestion(*f) : std::string{find_rule("R60")->remedy};
}

finding const* finding_of_no_gpu(audit_result const& r) {
    auto const at = std::ranges::find_if(r.findings, [](finding const& f) { return f.rule == "R01"; });
    return at == r.findings.end() ? nullptr : &*at;
}
// Not where there was somebody who was not seen, or not to the end.
bool is_sure_of_nothing(audit_result const& r) {
    auto const* const f = finding_of_no_gpu(r);
    return f == nullptr || f->sure == confidence::certain;
}
std::string remedy_of_no_gpu(audit_result const& r) {
    auto const* const f = finding_of_no_gpu(r);
    return std::string{f != nullptr ? remedy_of(*f) : find_rule("R01")->remedy};
}

}  // namespace

std::string_view name_of(cpu_shape s) noexcept {
    constexpr std::array names{"not known", "no", "yes", "it is CPU code"};
    return names[static_cast<std::size_t>(s)];
}

finding const* main_finding(report_input const& in) {
    auto const is_of = [](severity least) {
        return
            [least](finding const& f) { return f.level >= least && find_rule(f.rule)->step != audit_step::evidence; };
    };
    auto const& all = in.result.findings;
    auto const blocks = is_of(severity::blocking);
    // Rather one that names a line than one that names the program.
    auto at = std::ranges::find_if(all, [&](finding const& f) { return blocks(f) && f.place != 0; });
    if (at == all.end()) at = std::ranges::find_if(all, blocks);
    if (at == all.end()) at = std::ranges::find_if(all, is_of(severity::medium));
    return at == all.end() ? nullptr : &*at;
}

cpu_shape shape_of(report_input const& in) {
    if (in.result.nothing_ran) return is_sure_of_nothing(in.result) ? cpu_shape::cpu_code : cpu_shape::not_known;
    auto const* const p = main_process(in.m);
    if (p == nullptr || p->ops.empty()) return cpu_shape::not_known;
    bool const is_blocked = std::ranges::any_of(
        in.result.findings, [](finding const& f) { return f.level == severity::blocking && is_of_the_path(f); });
    if (is_blocked) return cpu_shape::yes;
    time_ns host = 0;
    for (auto const cause : host_causes) host += detail::gap_time(*p, {cause});
    host -= std::min(host, detail::idle_let_pass(*p, in.result));
    return 2 * host >= p->span() ? cpu_shape::yes : cpu_shape::no;
}

sign_off sign_off_of(report_input const& in) {
    sign_off out;
    out.shape = shape_of(in);
    switch (out.shape) {
        case cpu_shape::yes: say_what_forces(in, out); break;
        case cpu_shape::no:
            if (auto const* const f = main_finding(in)) out.change = suggestion(*f);
            break;
        case cpu_shape::cpu_code:
            out.forced_by = "nothing of it runs on a GPU";
            out.change = remedy_of_no_gpu(in.result);
            break;
        case cpu_shape::not_known:
            out.forced_by = "not known: " + in.result.why_not;
            if (in.result.nothing_ran) out.change = remedy_of_no_gpu(in.result);
            for (auto const& f : in.result.findings)
                if (f.what == in.result.why_not) out.change = remedy_of(f);
            break;
    }
    std::set<std::string_view> remedies;
    for (auto const& f : in.result.findings) {
        if (f.level <= severity::info || find_rule(f.rule)->step == audit_step::evidence) continue;
        if (out.first.size() < most_to_mend && remedies.insert(remedy_of(f)).second) out.first.push_back(&f);
    }
    return out;
}

}  // namespace kiln::audit
