// SPDX-License-Identifier: Apache-2.0
//
// Relations of two layers on the host, pair by pair: of rows whose boxes meet, the OR of what the contacts of their elements prove,
// and what follows from what was not seen: a path that neither touches nor is inside is outside, a segment that common pieces do not
// cover reaches into the exterior.
#include <kiln/spatial/relate.hpp>

#include "base/check.hpp"
#include "spatial/loops.hpp"
#include "spatial/relate.cuh"
#include "spatial/relate_pairs.hpp"
#include "spatial/rings.hpp"
#include "spatial/row_facts.hpp"

#include <algorithm>

namespace kiln::spatial {

namespace {

using namespace kiln_spatial;

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
    // What touches nothing is inside or outside as a whole. Entries are (own, other). is_inside(p): in an area of the other row.
    template <class IsInside>
    u32 rest(IsInside is_inside) {
        u32 out = 0;
        auto const row = static_cast<std::size_t>(row_);
        sort_unique(paths_);
        for (i32 p = l_.row_first[row_]; p < l_.row_first[row_ + 1]; ++p) {
            if (std::binary_search(paths_.begin(), paths_.end(), p)) continue;
            out |= is_inside(l_.at[l_.path_first[p]]) ? runs_through_area(l_.kind[p], interior)
                                                      : evidence_outside(l_.kind[p]);
        }
        sort_unique(ends_);
        if (static_cast<i32>(ends_.size()) < own_.ends(row)) {
            for (i32 v = l_.path_first[l_.row_first[row_]]; v < l_.path_first[l_.row_first[row_ + 1]]; ++v) {
                i32 const group = l_.group_first[v];
                if (l_.is_end[v] == 0 || l_.member[group] != v || std::binary_search(ends_.begin(), ends_.end(), group))
                    continue;
                out |= proof(boundary, is_inside(l_.at[v]) ? interior : exterior, 0);
            }
        }
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

// All that a contact says of the two halves, but for evidence.
void note_contact(half& a, i32 va, half& b, i32 vb, layer const& la, layer const& lb, segment_contact how) {
    point const a0 = la.at[va], a1 = element_end(la, va), b0 = lb.at[vb], b1 = element_end(lb, vb);
    constexpr point nowhere{__builtin_inf(), 0};
    // Ends touched are those that lie on the other element.
    auto const on = [&](point p0, point p1, point x) { return on_segment(p0, p1, x) ? x : nowhere; };
    a.touch(va, on(b0, b1, a0), on(b0, b1, a1));
    b.touch(vb, on(a0, a1, b0), on(a0, a1, b1));
    if (how == overlapping) a.overlap(va, b0, b1), b.overlap(vb, a0, a1);
}

constexpr u32 entry(int a, int b) { return 7U << (3 * (3 * a + b)); }
constexpr u32 meeting_entries =
    entry(interior, interior) | entry(interior, boundary) | entry(boundary, interior) | entry(boundary, boundary);

// All that rows of these dimensions can have.
u32 everything(int left, int right) noexcept {
    int const of_left[] = {left, left - 1, 2}, of_right[] = {right, right - 1, 2};
    u32 out = 0;
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b)
            if (int const d = std::min(of_left[a], of_right[b]); d >= 0) out |= proof(a, b, d);
    return out;
}

// Points are in areas or on them by the even-odd rule, whatever rings do; what lines and areas run along must be a border.
result<void> require_rings(geometries const& g, host_layer const& of, row_lookup& rows, host_layer const& other,
                           std::string_view side) {
    auto* const facts = row_facts::of(g);
    if (facts == nullptr || facts->are_borders) return {};
    bool has_paths = false;
    for (std::size_t i = 0; i < other.rows() && !has_paths; ++i) has_paths = other.dimension(i) > 0;
    if (!has_paths) return {};
    auto const bad = flawed_rings(of, rows, 1);
    if (!bad.empty()) return refused_rings(side, bad[0].message);
    facts->are_borders = true;
    return {};
}

}  // namespace

result<related_layers> related_layers::make(geometries const& left, geometries const& right) {
    KILN_TRY(auto a, host_layer::noded(left));
    KILN_TRY(auto b, host_layer::noded(right));
    auto layers = std::make_unique<both>(std::move(a), std::move(b));
    KILN_CHECK(require_rings(left, layers->left, layers->left_rows, layers->right, "left"));
    KILN_CHECK(require_rings(right, layers->right, layers->right_rows, layers->left, "right"));
    return related_layers{std::move(layers)};
}

related_layers::limits related_layers::limits_of(predicate what, int left, int right) noexcept {
    constexpr u32 ii = entry(interior, interior), ie = entry(interior, exterior), ei = entry(exterior, interior),
                  be = entry(boundary, exterior), eb = entry(exterior, boundary);
    bool const lines = left == 1 && right == 1;
    switch (what) {
        case predicate::contains:
        case predicate::covers: return {.any = ei | eb};
        case predicate::contains_properly:
            return {.any = ei | eb | entry(boundary, interior) | entry(boundary, boundary)};
        case predicate::within:
        case predicate::covered_by: return {.any = ie | be};
        case predicate::equals: return {.any = ie | be | ei | eb};
        case predicate::touches: return {.any = ii};
        case predicate::overlaps: return {.all = {lines ? proof(interior, interior, 1) : ii, ie, ei}};
        case predicate::crosses:
            if (lines) return {.any = proof(interior, interior, 1)};
            return {.all = {ii, left < right ? ie : ei, ii}};
        default: return {};
    }
}

std::uint32_t related_layers::evidence_for(std::int32_t row_left, std::int32_t row_right, limits const& until) {
    auto& [left, right, left_rows, right_rows] = *layers_;
    auto const i = static_cast<std::size_t>(row_left), j = static_cast<std::size_t>(row_right);
    int const da = left.dimension(i), db = right.dimension(j);
    half a{left, row_left, db}, b{right, row_right, da};
    u32 bits = proof(exterior, exterior, 2);
    if (left.state(i) == row_state::there && right.state(j) == row_state::there) bits |= evidence_of_dimensions(da, db);
    u32 const all = everything(da, db);
    auto const enough = [&] {
        if ((bits & until.any) != 0 || (bits & all) == all) return true;
        return until.all[0] != 0 && (bits & until.all[0]) != 0 && (bits & until.all[1]) != 0 &&
               (bits & until.all[2]) != 0;
    };
    if (enough()) return bits;
    auto const la = left.view(), lb = right.view();
    bool stopped = false;
    elements_.of(left_rows, row_left, right_rows, row_right, [&](i32 va, i32 vb) {
        auto const how = contact_of(la.at[va], element_end(la, va), lb.at[vb], element_end(lb, vb));
        if (how == apart) return false;
        bits |= evidence_of(la, va, lb, vb, how);
        note_contact(a, va, b, vb, la, lb, how);
        return stopped = enough();
    });
    if (stopped) return bits;
    bits |= a.rest([&, &rows = right_rows](point p) { return db == 2 && rows.is_inside(row_right, p); });
    bits |= transposed(b.rest([&, &rows = left_rows](point p) { return da == 2 && rows.is_inside(row_left, p); }));
    return bits;
}

related_layers::evidence related_layers::relate(std::int32_t row_left, std::int32_t row_right) {
    int const da = layers_->left.dimension(static_cast<std::size_t>(row_left)),
              db = layers_->right.dimension(static_cast<std::size_t>(row_right));
    u32 const bits = evidence_for(row_left, row_right, {});
    return {matrix{bits, da, db}, (bits & meeting_entries) != 0};
}

bool related_layers::holds(predicate what, std::int32_t row_left, std::int32_t row_right) {
    int const da = layers_->left.dimension(static_cast<std::size_t>(row_left)),
              db = layers_->right.dimension(static_cast<std::size_t>(row_right));
    u32 const bits = evidence_for(row_left, row_right, limits_of(what, da, db));
    return (bits & meeting_entries) != 0 && spatial::holds(what, matrix{bits, da, db});
}

namespace {
bool by_rows(related_pair const& a, related_pair const& b) noexcept {
    return a.left != b.left ? a.left < b.left : a.right < b.right;
}
}  // namespace

namespace cpu {

result<std::vector<related_pair>> relate_join(geometries const& left, geometries const& right) {
    KILN_TRY(auto layers, related_layers::make(left, right));
    std::vector<related_pair> out;
    layers.for_candidates([](box const&, box const&) { return true; },
                          [&](std::int32_t i, std::int32_t j) {
                              auto const [how, meets] = layers.relate(i, j);
                              if (meets) out.push_back({i, j, how});
                          });
    settle(out, by_rows);
    return out;
}

result<std::vector<std::optional<matrix>>> relate(geometries const& left, geometries const& right) {
    KILN_TRY(auto layers, related_layers::make(left, right));
    std::vector<std::optional<matrix>> out(std::min(left.rows(), right.rows()));
    in_any_order(out.size(), [&](std::size_t row) {
        auto const i = static_cast<std::int32_t>(row);
        if (!left.is_null(row) && !right.is_null(row)) out[row] = layers.relate(i, i).how;
    });
    return out;
}

}  // namespace cpu

}  // namespace kiln::spatial
