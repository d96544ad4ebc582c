// SPDX-License-Identifier: Apache-2.0
#include "audit/report.hpp"

#include <nlohmann/json.hpp>

namespace kiln::audit {

using json = nlohmann::ordered_json;

namespace {

json of_finding(finding const& f) {
    return {{"rule", f.rule},
            {"name", find_rule(f.rule)->name},
            {"severity", name_of(f.level)},
            {"confidence", name_of(f.sure)},
            {"count", f.count},
            {"per_step", f.per_step},
            {"cost", f.cost},
            {"where", f.where},
            {"by", f.place == 0 || f.where == "?" ? "unknown"
                   : f.caller                     ? "caller"
                                                  : "wrapper"},
            {"structural", f.structural},
            {"later", f.is_later},
            {"what", f.what},
            {"arithmetic", f.arithmetic},
            {"remedy", remedy_of(f)},
            {"stack", f.stack},
            {"pid", f.pid}};
}

json of_process(process_model const& p) {
    json ledger = json::array(), gaps = json::object(), stages = json::array();
    for (auto const& r : p.ledger)
        ledger.push_back({{"cause", r.cause}, {"ms", in_ms(r.wall)}, {"count", r.count}, {"inferred", r.inferred}});
    std::map<gap_cause, time_ns> by_cause;
    for (auto const& g : p.gaps) by_cause[g.cause] += g.when.length();
    for (auto const& [cause, t] : by_cause) gaps[std::string{name_of(cause)}] = in_ms(t);
    for (auto const& s : stages_of(p))
        stages.push_back({{"name", s.name},
                          {"actual", s.actual},
                          {"kernels", s.kernels},
                          {"bytes_to_host", s.to_host},
                          {"bytes_to_device", s.to_device},
                          {"busy_ms", in_ms(s.busy)},
                          {"wall_ms", in_ms(s.wall)},
                          {"left_at", s.left_at}});
    std::uint64_t kernels = 0, to_host = 0;
    for (auto const& o : p.ops) {
        kernels += o.kind == op_kind::kernel ? 1 : 0;
        if (o.way == direction::to_host) to_host += o.bytes;
    }
    return {{"pid", p.pid},
            {"program", p.program},
            {"device", p.device},
            {"ended_well", p.ended_well},
            {"operations", p.ops.size()},
            {"kernels", kernels},
            {"bytes_to_host", to_host},
            {"steps", {{"count", p.cycle.starts.size()}, {"anchor", p.cycle.anchor}, {"median_ms", in_ms(p.median)}}},
            {"steady",
             {{"ms", in_ms(p.steady.length())},
              {"busy_ms", in_ms(p.steady_busy)},
              {"from_step", p.steady_from_step},
              {"settled", p.settled}}},
            {"gaps_ms", gaps},
            {"ledger", ledger},
            {"stages", stages}};
}

// Programs that were seen and used no GPU.
json of_others(model const& m) {
    constexpr std::size_t most = 1000;
    std::set<std::uint32_t> recorded;
    for (auto const& p : m.processes) recorded.insert(p.pid);
    json out = json::array();
    for (auto const& c : m.children) {
        if (c.name.empty() || recorded.contains(c.pid) || out.size() == most) continue;
        out.push_back({{"pid", c.pid},
                       {"parent", c.parent},
                       {"program", c.command.empty() ? c.name : c.command},
                       {"recorded", !c.out_of_sight},
                       {"outlived", !c.was_waited_for && m.outlived(c.pid, c.when.from)}});
    }
    return out;
}

json of_compiles(model const& m) {
    json out = json::array();
    for (auto const& c : m.compiles)
        out.push_back({{"pid", c.pid},
                       {"program", c.program},
                       {"compiler", compiler_name(c.kind)},
                       {"name", c.name},
                       {"ms", in_ms(c.when.length())},
                       {"failed", c.is_failed}});
    return out;
}

}  // namespace

json to_json(report_input const& in) {
    json findings = json::array(), exempt = json::array(), processes = json::array();
    for (auto const& f : in.result.findings) findings.push_back(of_finding(f));
    for (auto const& e : in.result.exempt)
        exempt.push_back({{"rule", e.rule}, {"count", e.count}, {"where", e.where}, {"why", e.why}});
    for (auto const& p : in.m.processes) processes.push_back(of_process(p));
    json resting = json::array(), first = json::array();
    for (auto const& r : in.result.resting) resting.push_back({{"rule", r.rule}, {"why", r.why}});
    auto const signed_off = sign_off_of(in);
    for (auto const* const f : signed_off.first)
        first.push_back({{"rule", f->rule}, {"where", f->where}, {"remedy", remedy_of(*f)}});
    return {{"format", "kiln-audit"},
            {"version", 1},
            {"command", in.m.command},
            {"label", in.m.label},
            {"scale", in.m.scale},
            {"date", in.m.date},
            {"verdict", verdict(in)},
            {"worst", name_of(in.result.worst())},
            {"cpu_shaped", signed_off.shape == cpu_shape::not_known ? json{} : json(signed_off.shape != cpu_shape::no)},
            {"forced_by", signed_off.forced_by},
            {"change", signed_off.change},
            {"first_three", first},
            {"can_be_judged", in.result.can_be_judged},
            {"why_not", in.result.why_not},
            {"records", in.m.records},
            {"lost", in.m.dropped},
            {"findings", findings},
            {"exempt", exempt},
            {"good", in.result.good},
            {"resting", resting},
            {"processes", processes},
            {"others", of_others(in.m)},
            {"compiles", of_compiles(in.m)},
            {"recording", in.recording}};
}

}  // namespace kiln::audit
