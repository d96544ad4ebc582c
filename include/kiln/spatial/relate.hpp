// SPDX-License-Identifier: Apache-2.0
//
// How two geometries lie to each other: the DE-9IM matrix of OGC's simple features, and the predicates that are questions about
// it. A boundary is empty for points, the ends that an odd number of lines share for lines, and the rings for areas. Every entry
// is exact: it follows from signs of exact arithmetic on the input coordinates. Null rows relate to nothing. Rings must be borders
// where areas meet lines or areas: rows in which they are not are refused (validate_rings()).
//
//     for (auto const& [zone, place] : spatial::cpu::join(zones, places, spatial::predicate::contains).value()) ...
//     for (auto const& [left, right, how] : spatial::cpu::relate_join(zones, roads).value())
//         if (spatial::holds(spatial::predicate::crosses, how)) ...
#pragma once

#include <kiln/spatial/geometry.hpp>

#include <string>

namespace KILN_PUBLIC kiln {
namespace spatial {

enum class part : std::uint8_t { interior, boundary, exterior };

class matrix {
public:
    constexpr matrix() = default;
    // Three bits per entry, one per dimension that is proved; with the dimensions of the two rows, 0 to 2.
    constexpr matrix(std::uint32_t bits, int left, int right) noexcept
        : bits_{bits}, left_{static_cast<std::int8_t>(left)}, right_{static_cast<std::int8_t>(right)} {}

    // -1 for F.
    [[nodiscard]] constexpr int at(part left, part right) const noexcept {
        auto const entry = bits_ >> (3 * (3 * static_cast<int>(left) + static_cast<int>(right))) & 7U;
        return entry >= 4 ? 2 : entry >= 2 ? 1 : entry >= 1 ? 0 : -1;
    }
    [[nodiscard]] std::string text() const;  // "212FF1FF2"
    // Nine of T, F, *, 0, 1, 2. errc::invalid_argument for anything else.
    [[nodiscard]] result<bool> matches(std::string_view pattern) const;
    [[nodiscard]] constexpr std::uint32_t bits() const noexcept { return bits_; }
    [[nodiscard]] constexpr int left_dimension() const noexcept { return left_; }
    [[nodiscard]] constexpr int right_dimension() const noexcept { return right_; }

    friend bool operator==(matrix const& a, matrix const& b) { return a.text() == b.text(); }

private:
    std::uint32_t bits_ = 0;
    std::int8_t left_ = 0, right_ = 0;
};

enum class predicate : std::uint8_t {
    intersects,
    disjoint,
    contains,
    contains_properly,
    within,
    covers,
    covered_by,
    touches,
    crosses,
    overlaps,
    equals,
};
[[nodiscard]] std::string_view name_of(predicate what) noexcept;
[[nodiscard]] bool holds(predicate what, matrix const& of) noexcept;

struct row_pair {
    std::int32_t left = 0, right = 0;
    bool operator==(row_pair const&) const = default;
};
struct related_pair {
    std::int32_t left = 0, right = 0;
    matrix how;
};

namespace cpu {
// Pairs of rows of which it is true, by left, then right. Null rows are in none; empty ones are disjoint from everything.
[[nodiscard]] result<std::vector<row_pair>> join(geometries const& left, geometries const& right, predicate what);
// All pairs that are not disjoint, by left, then right.
[[nodiscard]] result<std::vector<related_pair>> relate_join(geometries const& left, geometries const& right);
// Row by row, up to the last row of the shorter array. Nothing for rows of which one is null.
[[nodiscard]] result<std::vector<std::optional<matrix>>> relate(geometries const& left, geometries const& right);
}  // namespace cpu

}  // namespace spatial
}  // namespace kiln
