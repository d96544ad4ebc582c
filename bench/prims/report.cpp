// SPDX-License-Identifier: Apache-2.0
#include "prims/report.hpp"

#include "plot/plot.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace kiln::bench {

namespace {

bool is_scan(std::string_view name) { return name.find("scan") != name.npos; }
bool has_user_operator(std::string_view name) { return name.find("user operator") != name.npos; }
// Of structs everything is to be quick: there the way without a template was the longest.
bool is_quick_to_link(std::string_view name) {
    return name == "scan" || name == "reduce" || name == "segmented reduce" || name == "lower bound" ||
           name.ends_with(", struct");
}

plot::bar_plot ratios(std::vector<measured> const& rows, std::string const& machine) {
    plot::bar_plot out{
        .title = "Throughput of Kiln by that of CUB, " + machine, .y = {"times CUB"}, .marks = {{"CUB", 1}}};
    std::set<std::size_t> sizes;
    for (auto const& r : rows) {
        if (r.what != "device" || r.cub <= 0) continue;
        sizes.insert(r.n);
        if (std::ranges::find(out.groups, r.name) == out.groups.end()) out.groups.push_back(r.name);
    }
    for (auto const n : sizes) {
        plot::bar_series s{fmt::format("n = 2^{:.0f}", std::log2(n)),
                           std::vector<double>(out.groups.size(), std::nan(""))};
        for (auto const& r : rows) {
            auto const at = std::ranges::find(out.groups, r.name);
            if (r.what == "device" && r.n == n && r.cub > 0)
                s.values[static_cast<std::size_t>(at - out.groups.begin())] = r.cub / r.kiln;
        }
        out.series.push_back(std::move(s));
    }
    return out;
}

}  // namespace

report::report(std::string machine) : machine_{std::move(machine)} {
    std::printf("%s\n%-8s %-34s %11s %12s %12s\n", machine_.c_str(), "what", "name", "n", "Kiln", "CUB");
}

void report::add(measured row) {
    std::printf("%-8s %-34s %11zu %12.4f %12.4f %s", row.what.c_str(), row.name.c_str(), row.n, row.kiln, row.cub,
                row.unit.c_str());
    if (row.cub > 0) std::printf("  %5.3fx", row.cub / row.kiln);
    std::printf("\n");
    std::fflush(stdout);
    rows_.push_back(std::move(row));
}

measured const* report::find(std::string_view what, std::string_view name, std::size_t n) const {
    for (auto const& r : rows_) {
        if (r.what == what && r.name == name && r.n == n) return &r;
    }
    return nullptr;
}

void report::add_device_goals(std::vector<goal>& out) const {
    for (auto const& r : rows_) {
        auto const at = fmt::format("{} {} n={}", r.what, r.name, r.n);
        if ((r.what == "device" || r.what == "types") && r.cub > 0) {
            double const need = is_scan(r.name) && has_user_operator(r.name) ? 1.15 : 0.99;
            out.push_back({at + ", times CUB", need, r.cub / r.kiln});
        } else if (r.what == "host" && r.cub > 0) {
            double const need = is_scan(r.name) ? 0.5 : 1;
            out.push_back({at + ", of CUB's time", need, r.kiln / r.cub, goal::sense::at_most});
        } else if (r.what == "cold") {
            out.push_back({at + ", ms", is_quick_to_link(r.name) ? 500.0 : 1200.0, r.kiln, goal::sense::at_most});
        } else if (r.what == "disk" || r.what == "shipped") {
            out.push_back({at + ", ms", 2, r.kiln, goal::sense::at_most});
        } else if (r.what == "source") {
            out.push_back({at + ", ms", 4000, r.kiln, goal::sense::at_most});
        }
    }
}

void report::add_shape_goals(std::vector<goal>& out) const {
    std::size_t const n = std::size_t{1} << 26;
    for (auto const* const name : {"lower_bound_i32", "upper_bound_i32", "lower_bound_u64", "upper_bound_u64"}) {
        if (auto const* const r = find("device", name, n))
            out.push_back({fmt::format("{} n={}, G queries/s", name, n), 6.3, static_cast<double>(n) / r->kiln * 1e-6});
    }
    auto const* const random = find("device", "lower_bound_i32", n);
    auto const* const sorted = find("shape", "lower_bound_i32, sorted queries", n);
    if (random != nullptr && sorted != nullptr)
        out.push_back({"sorted queries, times random ones", 3, random->kiln / sorted->kiln});
    for (auto const& r : rows_) {
        if (r.what != "device" || !r.name.starts_with("segmented_reduce_m")) continue;
        if (auto const* const sum = find("device", "segmented_reduce_sum_f64", r.n))
            out.push_back(
                {fmt::format("{} n={}, of sum's time", r.name, r.n), 1.05, r.kiln / sum->kiln, goal::sense::at_most});
    }
    for (int const length : {8, 16, 32, 64}) {
        auto const* const r = find("shape", fmt::format("segmented sum, of {}", length), n);
        if (r != nullptr && r->cub > 0)
            out.push_back({fmt::format("segments of {}, times CUB", length), 3, r->cub / r->kiln});
    }
}

std::vector<goal> report::goals() const {
    std::vector<goal> out;
    add_device_goals(out);
    add_shape_goals(out);
    return out;
}

void report::print_goals() const {
    auto const all = goals();
    auto const missed = std::ranges::count_if(all, [](goal const& g) { return !g.met(); });
    std::printf("%zu goals, %td missed\n", all.size(), missed);
    for (auto const& g : all) {
        if (!g.met())
            std::printf("  missed: %-60s %s %8.3f, is %8.3f\n", g.name.c_str(),
                        g.which == goal::sense::at_least ? "at least" : "at most", g.need, g.got);
    }
}

void report::write_json(std::filesystem::path const& file) const {
    nlohmann::ordered_json out{
        {"machine", machine_}, {"rows", nlohmann::json::array()}, {"goals", nlohmann::json::array()}};
    for (auto const& r : rows_) {
        out["rows"].push_back(nlohmann::ordered_json{
            {"what", r.what}, {"name", r.name}, {"n", r.n}, {"kiln", r.kiln}, {"cub", r.cub}, {"unit", r.unit}});
    }
    for (auto const& g : goals()) {
        out["goals"].push_back(
            nlohmann::ordered_json{{"name", g.name},
                                   {"sense", g.which == goal::sense::at_least ? "at least" : "at most"},
                                   {"need", g.need},
                                   {"got", g.got},
                                   {"met", g.met()}});
    }
    std::ofstream{file} << out.dump(1) << "\n";
}

void report::print_plot() const { std::printf("%s", plot::text(ratios(rows_, machine_)).c_str()); }
void report::write_plot(std::filesystem::path const& file) const {
    plot::write_svg(file, ratios(rows_, machine_)).value();
}

}  // namespace kiln::bench
