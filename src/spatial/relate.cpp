// SPDX-License-Identifier: Apache-2.0
//
// Relations of two layers on the host: contacts of elements by a tree over the right layer, insides by both layers' cells; then,
// pair by pair, the OR of what they prove, and what follows from what was not seen: a path that neither touches nor is inside is
// outside, a segment that common pieces do not cover reaches into the exterior.
#include <kiln/spatial/relate.hpp>

#include "base/check.hpp"
#include "spatial/cells.hpp"
#include "spatial/relate.cuh"

#include <algorithm>
#include <functional>

namespace kiln::spatial {

namespace {

using namespace kiln_spatial;

enum class fact : std::uint8_t {
    contact,      // left: element of the left layer, right: of the right one
    path_inside,  // a path of one layer (vertex: its first) inside a row of the other
    end_inside,   // a vertex in the boundary of lines
};
enum class side : std::uint8_t { left, right };

struct seen_fact {
    std::int32_t row_left, row_right;
    fact what;
    side of = side::left;  // of insides
    segment_contact how = apart;
    std::int32_t left = 0, right = 0;  // elements; for insides `left` is the vertex, of either side
};

using wanted = std::function<bool(i32, i32)>;

// ---- Collecting ----

void find_contacts(host_layer const& left, host_layer const& right, wanted const& want, std::vector<seen_fact>& out) {
    auto const a = left.view(), b = right.view();
    auto const others = right.elements();
    auto const boxes = right.boxes_of(others);
    host_tree const tree{boxes};
    auto const view = tree.view();
    auto const own = left.elements();
    auto const own_boxes = left.boxes_of(own);
    for (std::size_t i = 0; i < own.size(); ++i) {
        i32 const va = own[i], row_a = row_at(a, va);
        point const a0 = a.at[va], a1 = element_end(a, va);
        query_tree(view, outwards(own_boxes[i]), [&](u32 slot) {
            i32 const vb = others[view.item[slot]], row_b = row_at(b, vb);
            if (want && !want(row_a, row_b)) return;
            auto const how = contact_of(a0, a1, b.at[vb], element_end(b, vb));
            if (how != apart) out.push_back({row_a, row_b, fact::contact, side::left, how, va, vb});
        });
    }
}

// Paths and ends of `of` inside areas of `other`. A path is where its first vertex is, if it touches nothing.
void find_insides(host_layer const& of, host_layer const& other, side which, wanted const& want,
                  std::vector<seen_fact>& out) {
    host_cells const cells{other};
    auto const l = of.view();
    auto const look = [&](i32 v, fact what) {
        i32 const own = row_at(l, v);
        cells.locate(l.at[v], [&](i32 row, place where) {
            i32 const left = which == side::left ? own : row, right = which == side::left ? row : own;
            if (where == place::inside && (!want || want(left, right)))
                out.push_back({left, right, what, which, apart, v, 0});
            return false;
        });
    };
    for (i32 p = 0; p < l.paths; ++p) look(l.path_first[p], fact::path_inside);
    for (i32 v = 0; v < l.vertices; ++v)
        if (l.is_end[v] != 0 && l.member[l.group_first[v]] == v) look(v, fact::end_inside);
}

// ---- One pair ----

// A common piece of a segment, as an interval of x, or of y where it is upright.
struct piece {
    i32 segment;
    double from, to;
};

class half {
public:
    half(host_layer const& own, i32 row, int other_dimension)
        : own_{own}, l_{own.view()}, row_{row}, other_{other_dimension} {}

    void touch(i32 element, point x0, point x1) {
        paths_.push_back(l_.path_of[element]);
        for (point const x : {x0, x1}) {
            auto const at = place_on(l_, element, x);
            if (at.vertex >= 0 && l_.is_end[at.vertex] != 0) ends_.push_back(l_.group_first[at.vertex]);
        }
    }
    void overlap(i32 segment, point b0, point b1) {
        point const a0 = l_.at[segment], a1 = l_.at[segment + 1];
        bool const upright = a0.x == a1.x;
        double const p = upright ? a0.y : a0.x, q = upright ? a1.y : a1.x, r = upright ? b0.y : b0.x,
                     s = upright ? b1.y : b1.x;
        pieces_.push_back({segment, most(least(p, q), least(r, s)), least(most(p, q), most(r, s))});
    }
    u32 path_inside(i32 vertex) {
        paths_.push_back(l_.path_of[vertex]);
        return runs_through_area(l_.kind[l_.path_of[vertex]], interior);
    }
    u32 end_inside(i32 vertex) {
        ends_.push_back(l_.group_first[vertex]);
        return proof(boundary, interior, 0);
    }

    // What was not seen is outside. Entries are (own, other).
    u32 rest() {
        u32 out = 0;
        auto const row = static_cast<std::size_t>(row_);
        sort_unique(paths_);
        for (i32 p = l_.row_first[row_]; p < l_.row_first[row_ + 1]; ++p)
            if (!std::binary_search(paths_.begin(), paths_.end(), p))
                out |= evidence_outside(l_.kind[p], own_.dimension(row));
        sort_unique(ends_);
        if (static_cast<i32>(ends_.size()) < own_.ends(row)) out |= proof(boundary, exterior, 0);
        // Of lines nothing but common pieces covers anything; areas were asked by rays.
        if (other_ == 1 && own_.dimension(row) > 0 && covered_segments() < own_.segments(row))
            out |= proof(own_.dimension(row) == 2 ? boundary : interior, exterior, 1);
        return out;
    }

private:
    static void sort_unique(std::vector<i32>& v) {
        std::sort(v.begin(), v.end());
        v.erase(std::unique(v.begin(), v.end()), v.end());
    }
    i32 covered_segments() {
        std::sort(pieces_.begin(), pieces_.end(), [](piece const& a, piece const& b) {
            return a.segment != b.segment ? a.segment < b.segment : a.from < b.from;
        });
        i32 out = 0;
        for (std::size_t first = 0, last = 0; first < pieces_.size(); first = last) {
            i32 const s = pieces_[first].segment;
            point const a0 = l_.at[s], a1 = l_.at[s + 1];
            bool const upright = a0.x == a1.x;
            double reached = upright ? least(a0.y, a1.y) : least(a0.x, a1.x);
            double const end = upright ? most(a0.y, a1.y) : most(a0.x, a1.x);
            for (last = first; last < pieces_.size() && pieces_[last].segment == s; ++last)
                if (pieces_[last].from <= reached) reached = most(reached, pieces_[last].to);
            out += reached >= end ? 1 : 0;
        }
        return out;
    }

    host_layer const& own_;
    layer l_;
    i32 row_;
    int other_;
    std::vector<i32> paths_, ends_;
    std::vector<piece> pieces_;
};

matrix matrix_of(host_layer const& left, host_layer const& right, i32 row_left, i32 row_right,
                 std::span<seen_fact const> facts) {
    auto const i = static_cast<std::size_t>(row_left), j = static_cast<std::size_t>(row_right);
    int const da = left.dimension(i), db = right.dimension(j);
    half a{left, row_left, db}, b{right, row_right, da};
    bool const a_there = left.state(i) == row_state::there, b_there = right.state(j) == row_state::there;
    u32 bits = proof(exterior, exterior, 2);
    if (a_there && b_there) bits |= evidence_of_dimensions(da, db);
    auto const la = left.view(), lb = right.view();
    for (auto const& f : facts) {
        if (f.what == fact::contact) {
            bits |= evidence_of(la, f.left, lb, f.right, f.how);
            point const a0 = la.at[f.left], a1 = element_end(la, f.left), b0 = lb.at[f.right],
                        b1 = element_end(lb, f.right);
            // Ends touched are those that lie on the other element.
            auto const on = [&](point p0, point p1, point x, point otherwise) {
                return on_segment(p0, p1, x) ? x : otherwise;
            };
            constexpr point nowhere{__builtin_inf(), 0};
            a.touch(f.left, on(b0, b1, a0, nowhere), on(b0, b1, a1, nowhere));
            b.touch(f.right, on(a0, a1, b0, nowhere), on(a0, a1, b1, nowhere));
            if (f.how == overlapping) a.overlap(f.left, b0, b1), b.overlap(f.right, a0, a1);
        } else if (f.of == side::left) {
            bits |= f.what == fact::path_inside ? a.path_inside(f.left) : a.end_inside(f.left);
        } else {
            bits |= transposed(f.what == fact::path_inside ? b.path_inside(f.left) : b.end_inside(f.left));
        }
    }
    bits |= a.rest() | transposed(b.rest());
    return {bits, da, db};
}

struct both {
    host_layer left, right;
    std::vector<seen_fact> facts;  // by pair
};

result<both> collect(geometries const& left, geometries const& right, wanted const& want) {
    KILN_TRY(auto a, host_layer::noded(left));
    KILN_TRY(auto b, host_layer::noded(right));
    both out{std::move(a), std::move(b), {}};
    find_contacts(out.left, out.right, want, out.facts);
    find_insides(out.left, out.right, side::left, want, out.facts);
    find_insides(out.right, out.left, side::right, want, out.facts);
    std::stable_sort(out.facts.begin(), out.facts.end(), [](seen_fact const& f, seen_fact const& g) {
        return f.row_left != g.row_left ? f.row_left < g.row_left : f.row_right < g.row_right;
    });
    return out;
}

}  // namespace

namespace cpu {

result<std::vector<related_pair>> relate_join(geometries const& left, geometries const& right) {
    KILN_TRY(auto const all, collect(left, right, {}));
    std::vector<related_pair> out;
    auto const& facts = all.facts;
    for (std::size_t first = 0, last = 0; first < facts.size(); first = last) {
        auto const i = facts[first].row_left, j = facts[first].row_right;
        for (last = first; last < facts.size() && facts[last].row_left == i && facts[last].row_right == j;) ++last;
        out.push_back({i, j, matrix_of(all.left, all.right, i, j, std::span{facts}.subspan(first, last - first))});
    }
    return out;
}

result<std::vector<std::optional<matrix>>> relate(geometries const& left, geometries const& right) {
    KILN_TRY(auto const all, collect(left, right, [](i32 i, i32 j) { return i == j; }));
    std::vector<std::optional<matrix>> out(std::min(left.rows(), right.rows()));
    auto const& facts = all.facts;
    std::size_t first = 0;
    for (std::size_t row = 0; row < out.size(); ++row) {
        auto const i = static_cast<i32>(row);
        auto last = first;
        while (last < facts.size() && facts[last].row_left == i) ++last;
        if (all.left.state(row) != row_state::null && all.right.state(row) != row_state::null)
            out[row] = matrix_of(all.left, all.right, i, i, std::span{facts}.subspan(first, last - first));
        first = last;
    }
    return out;
}

}  // namespace cpu

}  // namespace kiln::spatial
