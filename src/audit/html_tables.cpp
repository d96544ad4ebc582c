// SPDX-License-Identifier: Apache-2.0
// What ran, what was copied, who waited, and which function asked for it.
#include "audit/html_parts.hpp"

#include <algorithm>
#include <array>

namespace kiln::audit::html {

namespace {

constexpr std::size_t most_table_rows = 40;

struct kernel_row {
    std::string name;
    std::uint64_t count = 0;
    time_ns time = 0;
    std::uint32_t blocks = 0, threads = 0;
    std::uint16_t registers = 0;
};

}  // namespace

void put_kernels(std::string& out, process_model const& p) {
    std::unordered_map<std::uint32_t, kernel_row> by_name;
    time_ns all = 0;
    for (auto const& o : p.ops) {
        if (o.kind != op_kind::kernel) continue;
        auto& r = by_name[o.name];
        ++r.count;
        r.time += o.length();
        r.blocks = o.blocks;
        r.threads = o.threads;
        r.registers = o.registers;
        all += o.length();
    }
    std::vector<kernel_row> rows;
    for (auto& [name, r] : by_name) {
        r.name = p.text(name);
        rows.push_back(r);
    }
    std::ranges::sort(rows, std::greater{}, &kernel_row::time);
    out += fmt::format(
        "<details open><summary>Kernels ({})</summary><div class=\"scroll\"><table><tr><th>name<th class=n>times<th "
        "class=n>time<th class=n>share<th class=n>blocks × threads<th class=n>registers</tr>",
        rows.size());
    for (std::size_t i = 0; i < std::min(rows.size(), most_table_rows); ++i) {
        auto const& r = rows[i];
        out += fmt::format(
            "<tr><td class=name><code>{}</code><td class=n>{}<td class=n>{}<td class=n>{:.1f} %<td class=n>{} × {}<td "
            "class=n>{}</tr>",
            escaped(short_kernel_name(r.name, 100)), r.count, time_text(r.time),
            100 * static_cast<double>(r.time) / static_cast<double>(std::max<time_ns>(1, all)), r.blocks, r.threads,
            r.registers);
    }
    out += "</table></div>";
    if (rows.size() > most_table_rows)
        out += fmt::format("<p class=\"small dim\">{} more are not shown.</p>", rows.size() - most_table_rows);
    out += "</details>";
}

void put_copies(std::string& out, process_model const& p) {
    struct row {
        std::uint64_t count = 0, bytes = 0;
        time_ns time = 0;
    };
    std::map<std::pair<std::string, std::string>, row> rows;
    for (auto const& o : p.ops) {
        if (o.kind == op_kind::kernel) continue;
        std::string const kind = o.kind == op_kind::set          ? "set"
                                 : o.way == direction::to_host   ? "to the host"
                                 : o.way == direction::to_device ? "to the device"
                                 : o.way == direction::on_device ? "on the device"
                                                                 : "other";
        auto& r = rows[{kind, p.place_at(p.place_of(o.correlation)).label}];
        ++r.count;
        r.bytes += o.bytes;
        r.time += o.length();
    }
    if (rows.empty()) return;
    out +=
        "<details><summary>Copies and sets, by line</summary><div class=\"scroll\"><table><tr><th>what<th>line<th "
        "class=n>times<th class=n>bytes<th class=n>time</tr>";
    std::size_t n = 0;
    for (auto const& [key, r] : rows) {
        if (++n > most_table_rows) break;
        out += fmt::format("<tr><td>{}<td>{}<td class=n>{}<td class=n>{}<td class=n>{}</tr>", key.first,
                           escaped(key.second), r.count, bytes_text(r.bytes), time_text(r.time));
    }
    out += "</table></div></details>";
}

void put_waits(std::string& out, process_model const& p) {
    static constexpr std::array names{"a read", "a timing", "housekeeping", "nobody"};
    std::map<std::tuple<std::string, std::size_t, std::string>, std::pair<std::uint64_t, time_ns>> rows;
    for (auto const& w : p.waits) {
        auto const& c = p.calls[static_cast<std::size_t>(w.call)];
        auto& r = rows[{p.text(c.name), static_cast<std::size_t>(w.by), p.place_at(p.place_of(c.correlation)).label}];
        ++r.first;
        r.second += c.end - c.start;
    }
    if (rows.empty()) return;
    out +=
        "<details><summary>Waits of the host</summary><div class=\"scroll\"><table><tr><th>call<th>needed "
        "by<th>line<th class=n>times<th class=n>time</tr>";
    std::size_t n = 0;
    for (auto const& [key, r] : rows) {
        if (++n > most_table_rows) break;
        out += fmt::format("<tr><td><code>{}</code><td>{}<td>{}<td class=n>{}<td class=n>{}</tr>",
                           escaped(std::get<0>(key)), names[std::get<1>(key)], escaped(std::get<2>(key)), r.first,
                           time_text(r.second));
    }
    out += "</table></div></details>";
}

void put_stages(std::string& out, process_model const& p) {
    auto const all = stages_of(p);
    if (all.empty()) return;
    out +=
        "<h2>Stages</h2><p class=\"small dim\">Functions of your own, by what they queued while their launches were "
        "watched: where they really ran, and where data left the device.</p><div "
        "class=\"scroll\"><table><tr><th>function<th>ran on<th class=n>kernels seen<th "
        "class=n>GPU time<th class=n>from first to last<th class=n>to host<th>left the device at</tr>";
    for (std::size_t i = 0; i < std::min<std::size_t>(12, all.size()); ++i) {
        auto const& s = all[i];
        out += fmt::format(
            "<tr><td class=name><code>{}</code><td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td "
            "class=n>{}<td>{}</tr>",
            escaped(s.name), s.actual, s.kernels, time_text(s.busy), time_text(s.wall), bytes_text(s.to_host),
            s.left_at.empty() ? "it stayed" : escaped(s.left_at));
    }
    out += "</table></div>";
}

}  // namespace kiln::audit::html
