// SPDX-License-Identifier: Apache-2.0
// What ran, what was copied, who waited, and which function asked for it.
#include "audit/html_parts.hpp"

#include <algorithm>
#include <array>

namespace kiln::audit::html {

namespace {

constexpr std::size_t most_table_rows = 40;
constexpr std::array consumer_names{"a read", "a timing", "housekeeping", "nobody"};

using launch_shape = std::pair<std::uint32_t, std::uint32_t>;  // blocks, threads

struct kernel_row {
    std::string name;
    std::uint64_t count = 0, seen = 0;
    time_ns time = 0, first = 0, last = 0;  // of all, of the first quarter and of the last
    std::map<launch_shape, time_ns> shapes;
    std::uint16_t registers = 0;
    [[nodiscard]] std::uint64_t quarter() const { return std::max<std::uint64_t>(1, count / 4); }
};

std::vector<kernel_row> kernel_rows(process_model const& p) {
    std::unordered_map<std::uint32_t, kernel_row> by_name;
    for (auto const& o : p.ops)
        if (o.kind == op_kind::kernel) ++by_name[o.name].count;
    for (auto const& o : p.ops) {
        if (o.kind != op_kind::kernel) continue;
        auto& r = by_name[o.name];
        if (r.seen < r.quarter()) r.first += o.length();
        if (r.seen >= r.count - r.quarter()) r.last += o.length();
        ++r.seen;
        r.time += o.length();
        r.shapes[{o.blocks, o.threads}] += o.length();
        r.registers = std::max(r.registers, o.registers);
    }
    std::vector<kernel_row> out;
    for (auto& [name, r] : by_name) {
        r.name = p.text(name);
        out.push_back(std::move(r));
    }
    std::ranges::sort(out, [](kernel_row const& x, kernel_row const& y) {
        return std::tie(y.time, x.name) < std::tie(x.time, y.name);
    });
    return out;
}

// The shape that took most of the time, and how many others there are.
std::string shapes_text(kernel_row const& r) {
    auto const& [blocks, threads] =
        std::ranges::max_element(r.shapes, {}, [](auto const& shape) { return shape.second; })->first;
    auto const others = r.shapes.size() - 1;
    return fmt::format("{} × {}{}", blocks, threads, others > 0 ? fmt::format(" and {} more", others) : "");
}

// A table that unfolds: its first rows, and how many more there are. `cells` writes a row's.
template <class Rows, class Cells>
void put_table(std::string& out, std::string_view title, std::string_view head, Rows const& rows, Cells const& cells) {
    if (rows.empty()) return;
    out += fmt::format("<details><summary>{}</summary><div class=\"scroll\"><table><tr>{}</tr>", title, head);
    std::size_t n = 0;
    for (auto const& row : rows) {
        if (++n > most_table_rows) break;
        out += "<tr>" + cells(row) + "</tr>";
    }
    out += "</table></div>";
    if (rows.size() > most_table_rows)
        out += fmt::format("<p class=\"small dim\">{} more are not shown.</p>", rows.size() - most_table_rows);
    out += "</details>";
}

}  // namespace

void put_kernels(std::string& out, process_model const& p) {
    auto const rows = kernel_rows(p);
    time_ns all = 0;
    for (auto const& r : rows) all += r.time;
    out += fmt::format(
        "<details open><summary>Kernels ({})</summary><div class=\"scroll\"><table><tr><th>name<th class=n>times<th "
        "class=n>time<th class=n>share<th class=n>each, early<th class=n>each, late<th class=n>blocks × threads<th "
        "class=n>registers</tr>",
        rows.size());
    for (std::size_t i = 0; i < std::min(rows.size(), most_table_rows); ++i) {
        auto const& r = rows[i];
        out += fmt::format(
            "<tr><td class=name><code>{}</code><td class=n>{}<td class=n>{}<td class=n>{:.1f} %<td class=n>{}<td "
            "class=n>{}<td class=n>{}<td class=n>{}</tr>",
            escaped(short_kernel_name(r.name, 100)), r.count, time_text(r.time),
            100 * static_cast<double>(r.time) / static_cast<double>(std::max<time_ns>(1, all)),
            time_text(r.first / r.quarter()), time_text(r.last / r.quarter()), shapes_text(r), r.registers);
    }
    out +=
        "</table></div><p class=\"small dim\">Each, early and late: the mean of the first quarter of its launches, and "
        "of "
        "the last.</p>";
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
    put_table(out, "Copies and sets, by line", "<th>what<th>line<th class=n>times<th class=n>bytes<th class=n>time",
              rows, [](auto const& each) {
                  auto const& [key, r] = each;
                  return fmt::format("<td>{}<td>{}<td class=n>{}<td class=n>{}<td class=n>{}", key.first,
                                     escaped(key.second), r.count, bytes_text(r.bytes), time_text(r.time));
              });
}

void put_waits(std::string& out, process_model const& p) {
    std::map<std::tuple<std::string, std::size_t, std::string>, std::pair<std::uint64_t, time_ns>> rows;
    for (auto const& w : p.waits) {
        auto const& c = p.calls[static_cast<std::size_t>(w.call)];
        auto& r = rows[{p.text(c.name), static_cast<std::size_t>(w.by), p.place_at(p.place_of(c.correlation)).label}];
        ++r.first;
        r.second += c.end - c.start;
    }
    put_table(out, "Waits of the host", "<th>call<th>needed by<th>line<th class=n>times<th class=n>time", rows,
              [](auto const& each) {
                  auto const& [key, r] = each;
                  return fmt::format("<td><code>{}</code><td>{}<td>{}<td class=n>{}<td class=n>{}",
                                     escaped(std::get<0>(key)), consumer_names[std::get<1>(key)],
                                     escaped(std::get<2>(key)), r.first, time_text(r.second));
              });
}

void put_allocations(std::string& out, process_model const& p) {
    static constexpr std::array names{"unknown", "pageable", "pinned", "device", "array", "managed"};
    struct row {
        std::uint64_t count = 0, bytes = 0, live = 0, most = 0;
    };
    using row_key = std::pair<std::string, std::string>;
    std::map<row_key, row> rows;
    std::unordered_map<std::uint64_t, std::pair<row_key, std::uint64_t>> held;  // by address
    auto all = p.from->memory;
    std::ranges::stable_sort(all, {}, &format::memory_record::time);
    for (auto const& m : all) {
        if (auto const at = held.find(m.address); at != held.end()) {
            rows[at->second.first].live -= at->second.second;
            held.erase(at);
        }
        if (m.operation != 1) continue;
        row_key const key{names[m.memory < names.size() ? m.memory : 0], p.place_at(p.place_of(m.correlation)).label};
        auto& r = rows[key];
        ++r.count;
        r.bytes += m.bytes;
        r.live += m.bytes;
        r.most = std::max(r.most, r.live);
        held[m.address] = {key, m.bytes};
    }
    put_table(
        out, "Allocations, by line",
        "<th>memory<th>line<th class=n>times<th class=n>bytes in all<th class=n>most at a time<th class=n>still held "
        "at the end",
        rows, [](auto const& each) {
            auto const& [key, r] = each;
            return fmt::format("<td>{}<td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}", key.first,
                               escaped(place_text(key.second)), r.count, bytes_text(r.bytes), bytes_text(r.most),
                               bytes_text(r.live));
        });
}

void put_streams(std::string& out, process_model const& p) {
    struct row {
        std::uint64_t kernels = 0, others = 0;
        time_ns time = 0;
        std::map<std::string, std::uint64_t> by;
    };
    std::map<std::uint32_t, row> rows;
    for (auto const& o : p.ops) {
        auto& r = rows[o.stream];
        ++(o.kind == op_kind::kernel ? r.kernels : r.others);
        r.time += o.length();
        auto const& where = p.place_at(p.place_of(o.correlation));
        if (where.label != "?") ++r.by[where.label + (where.caller ? "" : ", through " + where.innermost)];
    }
    auto const kind_of = [&](std::uint32_t stream) -> std::string_view {
        if (p.null_streams.contains(stream)) return "null";
        auto const flag = p.stream_flags.find(stream);
        return flag == p.stream_flags.end() ? "not known" : flag->second == 1 ? "blocking" : "non-blocking";
    };
    put_table(out, "Streams, and who queued work on them",
              "<th class=n>stream<th>kind<th class=n>kernels<th class=n>copies and sets<th class=n>time<th>most of it "
              "from",
              rows, [&](auto const& each) {
                  auto const& [stream, r] = each;
                  auto const most = std::ranges::max_element(r.by, {}, [](auto const& k) { return k.second; });
                  return fmt::format("<td class=n>{}<td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td>{}", stream,
                                     kind_of(stream), r.kernels, r.others, time_text(r.time),
                                     escaped(most == r.by.end() ? place_text("?") : most->first));
              });
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
