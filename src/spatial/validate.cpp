// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/validate.hpp>

#include "base/check.hpp"
#include "spatial/exact.cuh"
#include "spatial/row_facts.hpp"
#include "spatial/rows.hpp"

namespace kiln::spatial {

std::string_view name_of(flaw what) noexcept {
    switch (what) {
        case flaw::offsets: return "offsets";
        case flaw::child: return "child";
        case flaw::not_finite: return "not finite";
        case flaw::out_of_range: return "out of range";
        case flaw::open_ring: return "open ring";
        case flaw::too_few_points: return "too few points";
        case flaw::crossing_rings: return "crossing rings";
        case flaw::shared_border: return "shared border";
        case flaw::misplaced_ring: return "misplaced ring";
    }
    return "unknown";
}

namespace {

using finding = std::optional<flawed_row>;

template <class... Args>
finding found(std::size_t row, flaw what, fmt::format_string<Args...> format, Args&&... args) {
    return flawed_row{row, what, fmt::format("row {}: {}", row, fmt::format(format, std::forward<Args>(args)...))};
}

class row_check {
public:
    row_check(geometry_parts const& parts, std::size_t at, std::size_t row) : p_{parts}, at_{at}, row_{row} {}

    // That what it is made of is there, whatever that says.
    finding is_there() const {
        if (levels_of(p_.kind) == 0 && at_ >= p_.x.size()) return found(row_, flaw::child, "there is no point {}", at_);
        range all{at_, at_ + 1};
        for (std::size_t level = 0; level < levels_of(p_.kind); ++level)
            if (auto bad = enter(level, all, all)) return bad;
        return {};
    }

    finding run() const {
        auto const levels = levels_of(p_.kind);
        if (levels == 0) {
            if (at_ >= p_.x.size()) return found(row_, flaw::child, "there is no point {}", at_);
            if (std::isnan(p_.x.data()[at_]) && std::isnan(p_.y.data()[at_])) return {};
            return vertex(at_, "the point");
        }
        range all{at_, at_ + 1};
        for (std::size_t level = 0; level < levels; ++level) {
            range inner{};
            if (auto bad = enter(level, all, inner)) return bad;
            bool const last = level + 1 == levels;
            if (last && p_.kind != family::multipoint) {
                if (auto bad = shells()) return bad;
                for (auto i = all.first; i < all.last; ++i)
                    if (auto bad = path(level, i, i - all.first)) return bad;
                return {};
            }
            all = inner;
        }
        for (auto v = all.first; v < all.last; ++v)
            if (is_flawed(v)) return vertex(v, fmt::format("point {}", v - all.first));
        return {};
    }

private:
    struct range {
        std::size_t first, last;
    };

    // What lies inside the members `of` at a level; every offset between must be in order.
    finding enter(std::size_t level, range of, range& inner) const {
        auto const& offsets = p_.offsets[level];
        bool const last = level + 1 == levels_of(p_.kind);
        auto const room = static_cast<std::int64_t>(last ? p_.x.size() : p_.offsets[level + 1].size() - 1);
        if (of.last >= offsets.size())
            return found(row_, flaw::child, "level {} of its offsets has no element {}", level, of.last);
        for (auto i = of.first; i <= of.last; ++i) {
            auto const here = offsets.data()[i];
            if (here < 0 || here > room)
                return found(row_, flaw::offsets, "offset {} of level {} is {}, outside 0 to {}", i, level, here, room);
            if (i > of.first && here < offsets.data()[i - 1])
                return found(row_, flaw::offsets, "offset {} of level {} goes back from {} to {}", i, level,
                             offsets.data()[i - 1], here);
        }
        if (of.first == 0 && offsets.data()[0] != 0)
            return found(row_, flaw::offsets, "level {} begins at {}, not 0", level, offsets.data()[0]);
        inner = {static_cast<std::size_t>(offsets.data()[of.first]), static_cast<std::size_t>(offsets.data()[of.last])};
        return {};
    }

    // Of areas whose offsets are in order: a hole is one in something.
    finding shells() const {
        if (dimension_of(p_.kind) != 2) return {};
        bool const many = p_.kind == family::multipolygon;
        auto const *const rings = p_.offsets[many ? 1 : 0].data(), *const vertices = p_.offsets[many ? 2 : 1].data();
        auto const first = many ? p_.offsets[0].data()[at_] : static_cast<std::int32_t>(at_);
        auto const last = many ? p_.offsets[0].data()[at_ + 1] : first + 1;
        for (auto i = first; i < last; ++i) {
            auto const shell = rings[i], end = rings[i + 1];
            if (shell < end && vertices[shell] == vertices[shell + 1] && vertices[end] > vertices[shell])
                return found(row_, flaw::too_few_points, "polygon {} has a hole and no shell: its first ring is empty",
                             i - first);
        }
        return {};
    }

    finding path(std::size_t level, std::size_t at, std::size_t number) const {
        auto const first = static_cast<std::size_t>(p_.offsets[level].data()[at]);
        auto const last = static_cast<std::size_t>(p_.offsets[level].data()[at + 1]);
        bool const ring = dimension_of(p_.kind) == 2;
        for (auto v = first; v < last; ++v)
            if (is_flawed(v))
                return vertex(v, fmt::format("vertex {} of {} {}", v - first, ring ? "ring" : "line", number));
        if (first == last) return {};
        if (ring && last - first < 4)
            return found(row_, flaw::too_few_points, "ring {} has {} vertices, 4 are the least", number, last - first);
        if (!ring && last - first < 2)
            return found(row_, flaw::too_few_points, "line {} has one vertex, 2 are the least", number);
        auto const *const x = p_.x.data(), *const y = p_.y.data();
        if (ring && (x[first] != x[last - 1] || y[first] != y[last - 1]))
            return found(row_, flaw::open_ring, "ring {} is open: it begins at ({}, {}) and ends at ({}, {})", number,
                         x[first], y[first], x[last - 1], y[last - 1]);
        return {};
    }

    [[nodiscard]] bool is_flawed(std::size_t v) const noexcept {
        double const x = p_.x.data()[v], y = p_.y.data()[v];
        return !kiln_spatial::in_domain(x) || !kiln_spatial::in_domain(y);  // as what is not finite
    }
    // `name` counts within the row: where it lies in the array is nothing that anybody wrote.
    finding vertex(std::size_t v, std::string_view name) const {
        double const x = p_.x.data()[v], y = p_.y.data()[v];
        if (!std::isfinite(x) || !std::isfinite(y)) return found(row_, flaw::not_finite, "{} is ({}, {})", name, x, y);
        if (!kiln_spatial::in_domain(x) || !kiln_spatial::in_domain(y))
            return found(row_, flaw::out_of_range,
                         "{} is ({}, {}): signs are exact for 0 and magnitudes from 2^{} to below 2^{}; scale it", name,
                         x, y, kiln_spatial::least_exponent, kiln_spatial::most_exponent);
        return {};
    }

    geometry_parts const& p_;
    std::size_t at_, row_;
};

std::size_t memory_rows(geometries const& in) {
    if (in.kind() == family::mixed) return in.mixed().type.size();
    auto const& p = in.parts();
    return levels_of(p.kind) == 0 ? p.x.size() : p.offsets[0].size() - 1;
}

template <class Look>
finding check_row(geometries const& in, std::size_t row, Look look) {
    if (in.chosen()) {
        auto const chosen = in.chosen()->data()[row];
        if (chosen < 0 || static_cast<std::size_t>(chosen) >= memory_rows(in))
            return found(row, flaw::child, "the view chooses row {} of {}", chosen, memory_rows(in));
    }
    // Offsets of null rows are read like all others, by kernels and by their text on the host.
    bool const is_null = in.is_null(row);
    if (is_null && in.kind() == family::mixed) return {};
    auto const [parts, at] = locate_row(in, row);
    if (parts == nullptr) return found(row, flaw::child, "there is no child of its family");
    row_check const check{*parts, at, row};
    return is_null ? check.is_there() : look(check);
}

}  // namespace

result<std::vector<flawed_row>> validate(geometries const& what, std::size_t most) {
    if (what.where() == residency::device)
        return fail(errc::unsupported, "validate: the geometries are on a device; check them before they go there");
    std::vector<flawed_row> out;
    for (std::size_t row = 0; row < what.rows() && out.size() < most; ++row)
        if (auto bad = check_row(what, row, [](row_check const& r) { return r.run(); })) out.push_back(*std::move(bad));
    return out;
}

result<void> require_valid(geometries const& what) {
    KILN_TRY(auto const found, validate(what, 1));
    if (found.empty()) return {};
    return fail(errc::invalid_argument, "geometries: {}", found.front().message);
}

result<void> require_memory(geometries const& what) {
    if (auto const* const facts = row_facts::of(what); facts != nullptr && facts->are_valid) return {};
    for (std::size_t row = 0; row < what.rows(); ++row)
        if (auto const bad = check_row(what, row, [](row_check const& r) { return r.is_there(); }))
            return fail(errc::invalid_argument, "geometries: {}", bad->message);
    return {};
}

result<void> require_valid_once(geometries const& of) {
    auto* const facts = row_facts::of(of);
    if (facts == nullptr || facts->are_valid) return {};
    KILN_CHECK(require_valid(of));
    facts->are_valid = true;
    return {};
}

}  // namespace kiln::spatial
