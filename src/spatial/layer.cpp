// SPDX-License-Identifier: Apache-2.0
#include "spatial/layer.hpp"

#include "base/check.hpp"
#include "spatial/row_facts.hpp"
#include "spatial/rows.hpp"

#include <algorithm>
#include <numeric>

namespace kiln::spatial {

namespace {

using namespace kiln_spatial;

enum class repeated : std::uint8_t { kept, dropped };

// Until orientations are known, a ring's kind says what it is of its polygon.
constexpr u8 shell = ring_path, hole = reversed_ring;

}  // namespace

// A visitor of rows (spatial/rows.hpp) that writes paths.
class layer_writer {
public:
    layer_writer(host_layer& to, repeated points) : to_{to}, points_{points} {}

    void null() {
        to_.states_.push_back(row_state::null);
        to_.dimensions_.push_back(-1);
        close_row();
    }
    void begin(family kind) {
        dimension_ = spatial::dimension_of(kind);
        to_.dimensions_.push_back(static_cast<std::int8_t>(dimension_));
        next_ring_ = shell;
        if (kind == family::linestring) open(line_path);
    }
    void begin_polygon() { next_ring_ = shell; }
    void begin_ring() {
        open(next_ring_);
        next_ring_ = hole;
    }
    void begin_line() { open(line_path); }
    void vertex(double x, double y) {
        point const p{x + 0.0, y + 0.0};  // no negative zeros: equal points have equal bits
        if (dimension_ == 0) open(point_path);
        else if (points_ == repeated::dropped && to_.at_.size() > first_ && to_.at_.back() == p) return;
        to_.at_.push_back(p);
    }
    void end() {
        close();
        to_.states_.push_back(static_cast<std::size_t>(to_.row_first_.back()) == to_.kind_.size() ? row_state::empty
                                                                                                  : row_state::there);
        close_row();
    }

private:
    void open(u8 kind) {
        close();
        kind_ = kind, is_open_ = true, first_ = to_.at_.size();
    }
    // Paths without vertices are not there; a line whose points are all one is a point of a row of lines.
    void close() {
        if (!is_open_) return;
        is_open_ = false;
        auto const n = to_.at_.size() - first_;
        if (n == 0) return;
        to_.kind_.push_back(n == 1 ? static_cast<u8>(point_path) : kind_);
        to_.path_first_.push_back(static_cast<std::int32_t>(to_.at_.size()));
    }
    void close_row() { to_.row_first_.push_back(static_cast<std::int32_t>(to_.kind_.size())); }

    host_layer& to_;
    repeated points_;
    int dimension_ = 0;
    u8 kind_ = point_path, next_ring_ = shell;
    bool is_open_ = false;
    std::size_t first_ = 0;
};

result<host_layer> host_layer::plain(geometries const& from) {
    if (from.where() == residency::device) return fail(errc::unsupported, "spatial: the geometries are on a device");
    KILN_CHECK(require_valid_once(from));
    host_layer out;
    layer_writer to{out, repeated::kept};
    KILN_CHECK(visit_rows(from, to));
    out.finish_paths();
    return out;
}

result<host_layer> host_layer::noded(geometries const& from) {
    if (from.where() == residency::device) return fail(errc::unsupported, "spatial: the geometries are on a device");
    KILN_CHECK(require_valid_once(from));
    host_layer out;
    layer_writer to{out, repeated::dropped};
    KILN_CHECK(visit_rows(from, to));
    out.finish_paths();
    out.divide_at_own_vertices();
    out.find_orientations();
    out.find_groups();
    for (std::size_t r = 0; r < out.rows(); ++r)  // a line without length is a point
        if (out.dimensions_[r] == 1 && out.states_[r] == row_state::there && out.segments_[r] == 0)
            out.dimensions_[r] = 0;
    return out;
}

layer host_layer::view() const noexcept {
    return {.at = at_.data(),
            .path_first = path_first_.data(),
            .path_of = path_of_.data(),
            .row_of = row_of_.data(),
            .row_first = row_first_.data(),
            .kind = kind_.data(),
            .group_first = group_first_.data(),
            .group_size = group_size_.data(),
            .member = member_.data(),
            .is_end = is_end_.data(),
            .rows = static_cast<i32>(states_.size()),
            .paths = static_cast<i32>(kind_.size()),
            .vertices = static_cast<i32>(at_.size())};
}

void host_layer::finish_paths() {
    path_of_.resize(at_.size());
    for (std::size_t p = 0; p < kind_.size(); ++p)
        std::fill(path_of_.begin() + path_first_[p], path_of_.begin() + path_first_[p + 1], static_cast<i32>(p));
    row_of_.resize(kind_.size());
    for (std::size_t r = 0; r < rows(); ++r)
        std::fill(row_of_.begin() + row_first_[r], row_of_.begin() + row_first_[r + 1], static_cast<i32>(r));
}

std::vector<std::int32_t> host_layer::elements() const {
    auto const l = view();
    std::vector<std::int32_t> out;
    for (i32 v = 0; v < l.vertices; ++v)
        if (is_element(l, v)) out.push_back(v);
    return out;
}

std::vector<box> host_layer::boxes_of(std::vector<std::int32_t> const& elements) const {
    auto const l = view();
    std::vector<box> out(elements.size());
    std::transform(elements.begin(), elements.end(), out.begin(), [&](i32 v) {
        auto const a = l.at[v], b = element_end(l, v);
        return box{least(a.x, b.x), least(a.y, b.y), most(a.x, b.x), most(a.y, b.y)};
    });
    return out;
}

// Vertices and segments of a row, each by x: a segment that begins left of a vertex and does not end there is compared with it.
void host_layer::divide_at_own_vertices() {
    auto const l = view();
    struct inside {
        i32 segment;
        point at;
    };
    std::vector<inside> found;
    std::vector<i32> vertices;
    struct reach {
        double from, to;
        i32 segment;
    };
    std::vector<reach> segments;
    for (i32 row = 0; row < l.rows; ++row) {
        i32 const first = l.path_first[l.row_first[row]], last = l.path_first[l.row_first[row + 1]];
        vertices.clear(), segments.clear();
        for (i32 v = first; v < last; ++v) {
            if (l.kind[l.path_of[v]] < ring_path || is_segment(l, v))
                vertices.push_back(v);  // a ring's last is its first
            if (is_segment(l, v))
                segments.push_back({least(l.at[v].x, l.at[v + 1].x), most(l.at[v].x, l.at[v + 1].x), v});
        }
        if (segments.empty()) continue;
        auto const look = [&](point q, i32 s) {
            point const a = l.at[s], b = l.at[s + 1];
            if (q != a && q != b && on_segment(a, b, q)) found.push_back({s, q});
        };
        if (segments.size() > 20'000) {  // too many pass over one x
            std::vector<i32> of(segments.size());
            std::transform(segments.begin(), segments.end(), of.begin(), [](reach const& s) { return s.segment; });
            host_tree const tree{boxes_of(of)};
            auto const all = tree.view();
            for (auto const v : vertices) {
                point const q = l.at[v];
                query_tree(all, all.rough({q.x, q.y, q.x, q.y}), [&](u32 slot) { look(q, of[all.item[slot]]); });
            }
            continue;
        }
        std::sort(vertices.begin(), vertices.end(), [&](i32 a, i32 b) { return l.at[a].x < l.at[b].x; });
        std::sort(segments.begin(), segments.end(), [](reach const& a, reach const& b) { return a.from < b.from; });
        std::size_t next = 0;
        for (auto const& s : segments) {
            while (next < vertices.size() && l.at[vertices[next]].x < s.from) ++next;
            double const low = least(l.at[s.segment].y, l.at[s.segment + 1].y),
                         high = most(l.at[s.segment].y, l.at[s.segment + 1].y);
            for (auto k = next; k < vertices.size() && l.at[vertices[k]].x <= s.to; ++k) {
                point const q = l.at[vertices[k]];
                if (q.y >= low && q.y <= high) look(q, s.segment);
            }
        }
    }
    if (found.empty()) return;
    std::sort(found.begin(), found.end(), [&](inside const& a, inside const& b) {
        if (a.segment != b.segment) return a.segment < b.segment;
        point const from = l.at[a.segment], to = l.at[a.segment + 1];  // along the segment
        if (a.at.x != b.at.x) return (a.at.x < b.at.x) == (from.x < to.x);
        return a.at.y != b.at.y && (a.at.y < b.at.y) == (from.y < to.y);
    });
    found.erase(std::unique(found.begin(), found.end(),
                            [](inside const& a, inside const& b) { return a.segment == b.segment && a.at == b.at; }),
                found.end());

    std::vector<point> at;
    std::vector<std::int32_t> path_first{0};
    auto next = found.begin();
    for (std::size_t p = 0; p < kind_.size(); ++p) {
        for (i32 v = path_first_[p]; v < path_first_[p + 1]; ++v) {
            at.push_back(at_[static_cast<std::size_t>(v)]);
            for (; next != found.end() && next->segment == v; ++next) at.push_back(next->at);
        }
        path_first.push_back(static_cast<std::int32_t>(at.size()));
    }
    at_ = std::move(at), path_first_ = std::move(path_first);
    finish_paths();
}

namespace {

// Exactly, and also where the ring touches itself: at the lowest of the leftmost vertices all rays point right or up, and below
// the lowest of them is the outside. So the inside is on its left, and the ring runs counter-clockwise if it runs along it.
bool is_clockwise(layer const& l, i32 path) {
    i32 const first = l.path_first[path], last = l.path_first[path + 1] - 1;
    i32 best = first;
    for (i32 v = first; v < last; ++v) {
        point const p = l.at[v], q = l.at[best];
        if (p.x < q.x || (p.x == q.x && p.y < q.y)) best = v;
    }
    point const x = l.at[best];
    point lowest = l.at[vertex_before(l, best)];
    bool is_incoming = true;
    for (i32 v = best; v < last; ++v) {
        if (l.at[v] != x) continue;
        point const in = l.at[vertex_before(l, v)], out = l.at[vertex_after(l, v)];
        if (orient(x, lowest, in) < 0) lowest = in, is_incoming = true;
        if (orient(x, lowest, out) < 0) lowest = out, is_incoming = false;
    }
    return is_incoming;
}

}  // namespace

// The first ring of a polygon is its shell, the others are holes; which is which decides on which side the interior lies.
void host_layer::find_orientations() {
    auto const l = view();
    for (std::size_t p = 0; p < kind_.size(); ++p) {
        if (kind_[p] < ring_path) continue;
        bool const is_hole = kind_[p] == hole;
        kind_[p] = is_clockwise(l, static_cast<i32>(p)) != is_hole ? reversed_ring : ring_path;
    }
}

void host_layer::find_groups() {
    auto const l = view();
    auto const n = at_.size();
    group_first_.assign(n, 0), group_size_.assign(n, 0), is_end_.assign(n, 0);
    ends_.assign(rows(), 0), segments_.assign(rows(), 0);
    auto const closes = [&](i32 v) { return l.kind[l.path_of[v]] >= ring_path && !is_segment(l, v); };
    auto const ends_here = [&](i32 v) {
        if (l.kind[l.path_of[v]] != line_path) return 0;
        return (v == l.path_first[l.path_of[v]] ? 1 : 0) + (is_segment(l, v) ? 0 : 1);
    };
    member_.clear();
    for (i32 v = 0; v < l.vertices; ++v) {
        if (!closes(v)) member_.push_back(v);
        if (is_segment(l, v)) ++segments_[static_cast<std::size_t>(row_at(l, v))];
    }
    // Row by row, as they are.
    for (auto begin = member_.begin(), end = begin; begin != member_.end(); begin = end) {
        i32 const row = row_at(l, *begin), last = l.path_first[l.row_first[row + 1]];
        end = std::lower_bound(begin, member_.end(), last);
        std::sort(begin, end, [&](i32 a, i32 b) {
            point const p = l.at[a], q = l.at[b];
            if (p.x != q.x) return p.x < q.x;
            if (p.y != q.y) return p.y < q.y;
            return a < b;
        });
    }
    for (std::size_t first = 0, last = 0; first < member_.size(); first = last) {
        i32 const lead = member_[first];
        int ends = 0;
        for (last = first; last < member_.size(); ++last) {
            i32 const v = member_[last];
            if (row_at(l, v) != row_at(l, lead) || l.at[v] != l.at[lead]) break;
            ends += ends_here(v);
        }
        for (auto k = first; k < last; ++k) {
            auto const v = static_cast<std::size_t>(member_[k]);
            group_first_[v] = static_cast<i32>(first);
            group_size_[v] = static_cast<i32>(last - first);
            is_end_[v] = ends % 2 != 0 ? 1 : 0;
        }
        if (ends % 2 != 0) ++ends_[static_cast<std::size_t>(row_at(l, lead))];
    }
}

}  // namespace kiln::spatial
