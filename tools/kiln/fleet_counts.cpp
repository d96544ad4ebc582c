// SPDX-License-Identifier: Apache-2.0
#include "fleet_counts.hpp"

#include "remote/answer_times.hpp"

namespace kiln::cli {

namespace {

constexpr std::string_view error_prefix = "fleet-";

// Whoever reads this by a program need not ask first whether one is there.
store::counter_map all_counters(store::statistics const& s) {
    store::counter_map out;
    for (auto const* name : {"asked", "misses", "late", "hedged", "bytes_in", "bytes_out", "uploads", "dropped",
                             "leases", "lease_waits", "breaker_opened"})
        out[name] = 0;
    for (auto const& [name, n] : s.fleet) {
        if (!remote::is_answer_time(name)) out[name] = n;
    }
    auto const hits = s.hits.find("fleet");
    out["hits"] = hits == s.hits.end() ? 0 : hits->second;
    return out;
}

json quantile(store::statistics const& s, double part) {
    auto const ms = remote::answer_quantile_ms(s.fleet, part);
    return ms ? json(*ms) : json(nullptr);
}

}  // namespace

json fleet_json(store::statistics const& s) {
    json out = json::object();
    for (auto const& [name, n] : all_counters(s)) out[name] = n;
    json errors = json::object();
    for (auto const& [name, n] : s.errors) {
        if (name.starts_with(error_prefix)) errors[name.substr(error_prefix.size())] = n;
    }
    out["errors"] = std::move(errors);
    out["answer_p50_ms"] = quantile(s, 0.5);
    out["answer_p95_ms"] = quantile(s, 0.95);
    return out;
}

std::vector<std::vector<std::string>> fleet_rows(store::statistics const& s) {
    std::vector<std::vector<std::string>> out;
    for (auto const& [name, n] : all_counters(s)) {
        if (n > 0 && name != "hits") out.push_back({name, std::to_string(n)});
    }
    auto const half = remote::answer_quantile_ms(s.fleet, 0.5), most = remote::answer_quantile_ms(s.fleet, 0.95);
    if (half && most) out.push_back({"answers p50, p95", fmt::format("within {:.2f}, {:.2f} ms", *half, *most)});
    return out;
}

}  // namespace kiln::cli
