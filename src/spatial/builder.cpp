// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"
#include "spatial/rows.hpp"

#include <limits>

namespace kiln::spatial {

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// One family's memory while it grows. `opened[l]` counts what has begun at level l.
struct growing {
    std::vector<double> x, y;
    std::array<std::vector<std::int32_t>, 3> offsets = {{{0}, {0}, {0}}};
    std::size_t rows = 0;
};

}  // namespace

struct geometry_builder::state {
    std::array<growing, single_families + 1> of;  // by family's number
    std::vector<std::int8_t> types;               // 0: null
    std::vector<std::int32_t> child_rows;
    std::size_t nulls = 0;
    family kind = family::point;
    std::size_t vertices_of_row = 0;
    bool in_row = false, in_polygon = false, in_path = false;
    std::string problem;  // the first call that made no sense; none is heeded after it

    // What a call needs to have gone before.
    bool may(bool is_in_order, std::string_view what) {
        if (!problem.empty()) return false;
        if (!is_in_order) problem = fmt::format("row {}: {}", in_row ? types.size() - 1 : types.size(), what);
        return is_in_order;
    }

    growing& now() { return of[static_cast<std::size_t>(kind)]; }

    // What lies inside level l is counted in its offsets' last element.
    void begin_inside(std::size_t level) {
        auto& g = now();
        ++g.offsets[level].back();
        g.offsets[level + 1].push_back(g.offsets[level + 1].back());
    }
};

geometry_builder::geometry_builder() : state_{std::make_unique<state>()} {}
geometry_builder::geometry_builder(geometry_builder&&) noexcept = default;
geometry_builder::~geometry_builder() = default;

void geometry_builder::null() {
    if (!state_->may(!state_->in_row, "null() before end()")) return;
    state_->types.push_back(0);
    state_->child_rows.push_back(0);
    ++state_->nulls;
}

void geometry_builder::begin(family kind) {
    auto& s = *state_;
    if (!s.may(!s.in_row, "begin() before end()")) return;
    auto const number = static_cast<std::size_t>(kind);
    if (!s.may(number >= 1 && number <= single_families, "a row is of one of the six families, not mixed")) return;
    s.kind = kind;
    s.vertices_of_row = 0;
    s.in_row = true, s.in_polygon = kind == family::polygon;
    s.in_path = kind == family::point || kind == family::linestring || kind == family::multipoint;
    auto& g = s.now();
    s.types.push_back(static_cast<std::int8_t>(kind));
    s.child_rows.push_back(static_cast<std::int32_t>(g.rows++));
    if (levels_of(kind) > 0) g.offsets[0].push_back(g.offsets[0].back());
}
void geometry_builder::begin_polygon() {
    auto& s = *state_;
    if (!s.may(s.in_row && s.kind == family::multipolygon, "begin_polygon() outside of a multipolygon")) return;
    s.begin_inside(0);
    s.in_polygon = true, s.in_path = false;
}
void geometry_builder::begin_ring() {
    auto& s = *state_;
    if (!s.may(s.in_row && s.in_polygon, "begin_ring() outside of a polygon")) return;
    s.begin_inside(s.kind == family::multipolygon ? 1 : 0);
    s.in_path = true;
}
void geometry_builder::begin_line() {
    auto& s = *state_;
    if (!s.may(s.in_row && s.kind == family::multilinestring, "begin_line() outside of a multilinestring")) return;
    s.begin_inside(0);
    s.in_path = true;
}

void geometry_builder::vertex(double x, double y) {
    auto& s = *state_;
    bool const is_second = s.kind == family::point && s.vertices_of_row == 1;
    if (!s.in_row || !s.in_path || is_second || !s.problem.empty()) {
        s.may(s.in_row, "a vertex before begin()");
        s.may(s.in_path, "a vertex before begin_ring() or begin_line()");
        s.may(!is_second, "a second vertex of a point");
        return;
    }
    auto& g = s.now();
    g.x.push_back(x), g.y.push_back(y);
    if (auto const levels = levels_of(s.kind); levels > 0) ++g.offsets[levels - 1].back();
    ++s.vertices_of_row;
}

void geometry_builder::end() {
    auto& s = *state_;
    if (!s.may(s.in_row, "end() before begin()")) return;
    if (s.kind == family::point && s.vertices_of_row == 0) vertex(not_a_number, not_a_number);
    s.in_row = false;
}

std::size_t geometry_builder::rows() const noexcept { return state_->types.size(); }

namespace {

std::optional<buffer<std::uint8_t>> validity_of(std::vector<std::int8_t> const& types, std::size_t nulls) {
    if (nulls == 0) return {};
    std::vector<std::uint8_t> bits((types.size() + 7) / 8, 0);
    for (std::size_t i = 0; i < types.size(); ++i)
        if (types[i] != 0) bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1U << (i % 8));
    return buffer<std::uint8_t>::copy_of(bits);
}

result<geometry_parts> finished(family kind, growing& g) {
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
    if (g.x.size() > most || g.rows > most)
        return fail(errc::unsupported, "geometries: {} vertices in one array; 2^31 - 1 at most", g.x.size());
    geometry_parts out;
    out.kind = kind;
    out.x = buffer<double>::copy_of(g.x), out.y = buffer<double>::copy_of(g.y);
    for (std::size_t l = 0; l < levels_of(kind); ++l) out.offsets[l] = buffer<std::int32_t>::copy_of(g.offsets[l]);
    return out;
}

// One family with nulls among its rows: a null row takes no vertices, but for a point's, which are empty.
growing with_nulls(family kind, growing const& from, std::vector<std::int8_t> const& types) {
    growing out = from;
    std::size_t row = 0;
    if (kind == family::point) {
        out.x.clear(), out.y.clear();
        for (auto const type : types) {
            out.x.push_back(type != 0 ? from.x[row] : not_a_number);
            out.y.push_back(type != 0 ? from.y[row] : not_a_number);
            row += type != 0 ? 1 : 0;
        }
    } else {
        out.offsets[0] = {0};
        for (auto const type : types) {
            row += type != 0 ? 1 : 0;
            out.offsets[0].push_back(from.offsets[0][row]);
        }
    }
    out.rows = types.size();
    return out;
}

}  // namespace

result<geometries> geometry_builder::finish(family fallback) {
    state s = std::move(*state_);
    *state_ = {};
    s.may(!s.in_row, "finish() before end()");
    if (!s.problem.empty()) return fail(errc::invalid_argument, "geometries: {}", s.problem);
    std::size_t families = 0;
    auto only = fallback;
    for (std::size_t i = 1; i <= single_families; ++i) {
        if (s.of[i].rows == 0) continue;
        ++families;
        only = static_cast<family>(i);
    }
    auto validity = validity_of(s.types, s.nulls);
    if (families <= 1 && fallback != family::mixed) {
        auto g = with_nulls(only, s.of[static_cast<std::size_t>(only)], s.types);
        KILN_TRY(auto parts, finished(only, g));
        parts.validity = std::move(validity);
        return geometries::make(std::move(parts));
    }
    mixed_parts parts;
    for (std::size_t i = 1; i <= single_families; ++i) {
        bool const stands_for_none = families == 0 && static_cast<family>(i) == family::point;
        if (s.of[i].rows == 0 && !stands_for_none) continue;
        KILN_TRY(auto child, finished(static_cast<family>(i), s.of[i]));
        KILN_TRY(auto made, geometries::make(std::move(child)));
        parts.children.push_back(std::move(made));
    }
    auto const any = static_cast<std::int8_t>(parts.children.front().kind());
    for (auto& type : s.types) type = type == 0 ? any : type;  // of null rows, which nobody looks at
    parts.type = buffer<std::int8_t>::copy_of(s.types);
    parts.child_row = buffer<std::int32_t>::copy_of(s.child_rows);
    parts.validity = std::move(validity);
    return geometries::make(std::move(parts));
}

result<geometries> geometries::compact() const {
    if (where_ == residency::device) return fail(errc::unsupported, "geometries: compact() works on the host");
    if (!chosen_) return *this;
    geometry_builder to;
    KILN_CHECK(visit_rows(*this, to));
    return to.finish(kind_);
}

}  // namespace kiln::spatial
