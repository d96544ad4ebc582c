// SPDX-License-Identifier: Apache-2.0
#include "spatial/cells.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::spatial {

namespace {

using namespace kiln_spatial;

}  // namespace

host_cells::host_cells(host_layer const& of, cell_options const& how) : how_{how}, layer_{of.view()} {
    std::vector<std::int32_t> edges;
    for (i32 v = 0; v < layer_.vertices; ++v)
        if (layer_.kind[layer_.path_of[v]] >= ring_path && is_segment(layer_, v)) edges.push_back(v);
    make_frame(edges);
    heads_.assign(static_cast<std::size_t>(frame_.columns) * static_cast<std::size_t>(frame_.rows), head_empty);
    auto all = entries(edges);
    std::stable_sort(all.begin(), all.end(),
                     [](entry const& a, entry const& b) { return a.cell != b.cell ? a.cell < b.cell : a.row < b.row; });
    write(std::move(all), frame_, 0, 1, ~0U);
}

cell_grid host_cells::view() const noexcept {
    return {.x = frame_.x,
            .y = frame_.y,
            .width = frame_.width,
            .height = frame_.height,
            .per_width = 1 / frame_.width,
            .per_height = 1 / frame_.height,
            .columns = frame_.columns,
            .rows = frame_.rows,
            .head = heads_.data(),
            .record = records_.data(),
            .sub = subs_.data(),
            .at = layer_.at,
            .first_cell = 0};
}

void host_cells::make_frame(std::vector<std::int32_t> const& edges) {
    box all{INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (auto const v : edges) {
        auto const p = layer_.at[v];
        all = {least(all.min_x, p.x), least(all.min_y, p.y), most(all.max_x, p.x), most(all.max_y, p.y)};
    }
    auto const framed = frame_cells(all, edges.size(), how_);
    frame_ = framed.frame, least_side_ = framed.least_side;
}

// Corners first, then edges in the order of the rings.
std::vector<host_cells::entry> host_cells::entries(std::vector<std::int32_t> const& edges) const {
    auto const columns = static_cast<std::uint64_t>(frame_.columns);
    struct crossed {
        std::uint32_t row;
        i32 line, column;
    };
    std::vector<crossed> lines;
    for (auto const v : edges) {
        visit_crossed_lines(frame_, layer_.at[v], layer_.at[v + 1], [&](i32 line, i32 column) {
            lines.push_back({static_cast<std::uint32_t>(row_at(layer_, v)), line, column});
        });
    }
    std::sort(lines.begin(), lines.end(), [](crossed const& a, crossed const& b) {
        return a.row != b.row ? a.row < b.row : a.line != b.line ? a.line < b.line : a.column < b.column;
    });
    std::vector<entry> out;
    // Every row crosses every line an even number of times; from each odd crossing to the next, corners are inside.
    for (std::size_t i = 0; i + 1 < lines.size(); i += 2)
        for (i32 c = lines[i].column; c < lines[i + 1].column; ++c)
            out.push_back({static_cast<std::uint64_t>(lines[i].line) * columns + static_cast<std::uint64_t>(c),
                           lines[i].row, corner});
    for (auto const v : edges) {
        visit_cells(frame_, layer_.at[v], layer_.at[v + 1], [&](i32 column, i32 line) {
            out.push_back({static_cast<std::uint64_t>(line) * columns + static_cast<std::uint64_t>(column),
                           static_cast<std::uint32_t>(row_at(layer_, v)), static_cast<std::uint32_t>(v)});
        });
    }
    return out;
}

void host_cells::write(std::vector<entry> sorted, cell_frame const& frame, std::size_t first_head, int level,
                       std::uint32_t parent_edges) {
    for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
        std::uint32_t edges = 0;
        for (end = begin; end < sorted.size() && sorted[end].cell == sorted[begin].cell; ++end)
            edges += sorted[end].edge != corner ? 1 : 0;
        std::span const cell{sorted.data() + begin, end - begin};
        auto const at = first_head + static_cast<std::size_t>(cell[0].cell);
        if (edges == 0 && cell.size() == 1) {
            heads_[at] = head_full | cell[0].row;
            continue;
        }
        // Dividing helps only where it parts the edges: many that meet in one point stay together.
        if (edges > how_.split_above && edges <= parent_edges / 2 && level < how_.levels &&
            std::min(frame.width, frame.height) / 2 >= least_side_) {
            std::uint32_t log = 1;
            while (log < 5 && std::ldexp(how_.edges_per_cell, static_cast<int>(2 * log)) < edges &&
                   std::ldexp(std::min(frame.width, frame.height), -static_cast<int>(log) - 1) >= least_side_)
                ++log;
            auto const columns = static_cast<std::uint64_t>(frame.columns);
            cell_frame const whole{frame.x + static_cast<double>(cell[0].cell % columns) * frame.width,
                                   frame.y + static_cast<double>(cell[0].cell / columns) * frame.height,
                                   frame.width,
                                   frame.height,
                                   1,
                                   1};
            i32 const n = 1 << log;
            cell_frame const parts{whole.x,
                                   whole.y,
                                   std::ldexp(frame.width, -static_cast<int>(log)),
                                   std::ldexp(frame.height, -static_cast<int>(log)),
                                   n,
                                   n};
            auto const sub_head = heads_.size();
            heads_.resize(sub_head + static_cast<std::size_t>(n) * static_cast<std::size_t>(n), head_empty);
            heads_[at] = head_divided | static_cast<std::uint32_t>(subs_.size());
            subs_.push_back({static_cast<std::uint32_t>(sub_head), log});
            write(divided(cell, whole, parts), parts, sub_head, level + 1, edges);
            continue;
        }
        heads_[at] = head_list | static_cast<std::uint32_t>(records_.size());
        for (std::size_t i = 0; i < cell.size(); ++i) {
            bool const new_row = i == 0 || cell[i - 1].row != cell[i].row;
            bool const after_corner = !new_row && cell[i - 1].edge == corner;
            if (cell[i].edge == corner) {
                if (i + 1 == cell.size() || cell[i + 1].row != cell[i].row)
                    records_.push_back({cell[i].row | record_first | record_full, 0, 0, 0});
            } else if (new_row || after_corner || cell[i - 1].edge + 1 != cell[i].edge) {
                auto const flags = (new_row || after_corner ? record_first : 0U) | (after_corner ? record_corner : 0U);
                records_.push_back({cell[i].row | flags, cell[i].edge, cell[i].edge + 1, 0});
            } else {
                records_.back().last = cell[i].edge + 1;
            }
        }
        records_.back().row |= record_last;
    }
}

// The same entries for the parts of a cell: corners by the walk that locates points, edges by another look at them.
std::vector<host_cells::entry> host_cells::divided(std::span<entry const> of, cell_frame const& whole,
                                                   cell_frame const& parts) const {
    std::vector<entry> out;
    auto const n = static_cast<std::uint64_t>(parts.columns);
    for (std::size_t first = 0, last = 0; first < of.size(); first = last) {
        for (last = first; last < of.size() && of[last].row == of[first].row;) ++last;
        for (std::uint64_t c = 0; c < n * n; ++c) {
            point const p{parts.x + static_cast<double>(c % n) * parts.width,
                          parts.y + static_cast<double>(c / n) * parts.height};
            cell_walk<tie::on> walk{p, {whole.x, whole.y}, false};
            for (auto i = first; i < last; ++i) {
                if (of[i].edge == corner) walk.inside = !walk.inside;
                else walk.edge(layer_.at[of[i].edge], layer_.at[of[i].edge + 1]);
            }
            if (walk.inside) out.push_back({c, of[first].row, corner});
        }
        for (auto i = first; i < last; ++i) {
            if (of[i].edge == corner) continue;
            visit_cells(parts, layer_.at[of[i].edge], layer_.at[of[i].edge + 1], [&](i32 column, i32 line) {
                out.push_back(
                    {static_cast<std::uint64_t>(line) * n + static_cast<std::uint64_t>(column), of[i].row, of[i].edge});
            });
        }
    }
    std::stable_sort(out.begin(), out.end(),
                     [](entry const& a, entry const& b) { return a.cell != b.cell ? a.cell < b.cell : a.row < b.row; });
    return out;
}

}  // namespace kiln::spatial
