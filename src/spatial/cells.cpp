// SPDX-License-Identifier: Apache-2.0
#include "spatial/cells.hpp"

#include "spatial/point_location.cuh"

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
    auto const lines = make_frame(edges);
    heads_.assign(cells_in(frame_), head_empty);
    auto all = entries(edges, lines);
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

std::size_t host_cells::bytes() const noexcept {
    return heads_.size() * sizeof(heads_[0]) + records_.size() * sizeof(records_[0]) + subs_.size() * sizeof(subs_[0]);
}

std::vector<host_cells::crossed> host_cells::make_frame(std::vector<std::int32_t> const& edges) {
    box all{INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (auto const v : edges) {
        auto const p = layer_.at[v];
        all = {least(all.min_x, p.x), least(all.min_y, p.y), most(all.max_x, p.x), most(all.max_y, p.y)};
    }
    auto const take = [&](framed_cells const& framed) { frame_ = framed.frame, least_side_ = framed.least_side; };
    auto const corners_of = [](std::vector<crossed> const& lines) {
        std::size_t out = 0;
        for (std::size_t i = 0; i + 1 < lines.size(); i += 2)
            out += static_cast<std::size_t>(lines[i + 1].column - lines[i].column);
        return out;
    };
    take(frame_cells(all, edges.size(), how_));
    auto const most_corners = most_corners_for(cells_in(frame_));
    auto lines = crossed_lines(edges);
    while (corners_of(lines) > most_corners) {
        auto const fewer = coarser(frame_, all, edges.size(), how_);
        if (!fewer) break;
        take(*fewer);
        lines = crossed_lines(edges);
    }
    return lines;
}

// By row and line: every row crosses every line an even number of times.
std::vector<host_cells::crossed> host_cells::crossed_lines(std::vector<std::int32_t> const& edges) const {
    std::vector<crossed> lines;
    for (auto const v : edges) {
        visit_crossed_lines(frame_, layer_.at[v], layer_.at[v + 1], [&](i32 line, i32 column) {
            lines.push_back({static_cast<std::uint32_t>(row_at(layer_, v)), line, column});
        });
    }
    std::sort(lines.begin(), lines.end(), [](crossed const& a, crossed const& b) {
        return a.row != b.row ? a.row < b.row : a.line != b.line ? a.line < b.line : a.column < b.column;
    });
    return lines;
}

// Corners first, then edges in the order of the rings.
std::vector<host_cells::entry> host_cells::entries(std::vector<std::int32_t> const& edges,
                                                   std::vector<crossed> const& lines) const {
    auto const columns = static_cast<std::uint64_t>(frame_.columns);
    std::vector<entry> out;
    // From each odd crossing to the next, corners are inside.
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

std::uint32_t host_cells::divisions(std::span<entry const> cell, cell_frame const& frame,
                                    std::vector<std::uint32_t> const& corners, std::uint32_t edges,
                                    std::uint32_t parent_edges) const {
    auto const columns = static_cast<std::size_t>(frame.columns), at = static_cast<std::size_t>(cell[0].cell);
    cell_load load{.edges = edges, .rows = 0, .depth = 0};
    for (std::size_t i = 0; i < cell.size(); ++i) load.rows += i == 0 || cell[i - 1].row != cell[i].row ? 1 : 0;
    bool const last_column = at % columns + 1 == columns,
               last_row = at / columns + 1 == static_cast<std::size_t>(frame.rows);
    for (std::size_t const right : {0, 1})
        for (std::size_t const above : {0, 1})
            if ((right == 0 || !last_column) && (above == 0 || !last_row))
                load.depth = std::max(load.depth, corners[at + right + above * columns]);
    division const how{how_.split_above, how_.edges_per_cell, least_side_, 1};
    return how.log_of({.x = 0,
                       .y = 0,
                       .width = frame.width,
                       .height = frame.height,
                       .parent_edges = parent_edges,
                       .storey = 0,
                       .columns = columns,
                       .is_last_column = last_column,
                       .is_last_row = last_row},
                      load);
}

void host_cells::write(std::vector<entry> sorted, cell_frame const& frame, std::size_t first_head, int level,
                       std::uint32_t parent_edges) {
    std::vector<std::uint32_t> corners(cells_in(frame), 0);
    for (auto const& e : sorted) corners[static_cast<std::size_t>(e.cell)] += e.edge == corner ? 1 : 0;
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
        bool const is_crowded = edges > how_.split_above && level < how_.levels;
        if (auto const log = is_crowded ? divisions(cell, frame, corners, edges, parent_edges) : 0U; log > 0) {
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
