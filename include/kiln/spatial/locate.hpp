// SPDX-License-Identifier: Apache-2.0
//
// Which areas each point is in: O(1) per point and answer, however many vertices the areas have. An index over the areas is built once and
// asked as often as wanted, by any number of threads. Exact: a point is on a boundary only if it is.
//
//     auto const index = spatial::cpu::area_index::make(zones).value();
//     auto const pairs = index.locate(places).value();
#pragma once

#include <kiln/spatial/geometry.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

enum class standing : std::uint8_t { inside, on_boundary };
struct located_point {
    std::int32_t point = 0, area = 0;
    standing how = standing::inside;
    bool operator==(located_point const&) const = default;
};

namespace cpu {
class area_index {
public:
    // Rows that are not areas contain nothing.
    [[nodiscard]] static result<area_index> make(geometries const& areas);
    // An array of points; null and empty ones are nowhere. By point, then area.
    [[nodiscard]] result<std::vector<located_point>> locate(geometries const& points) const;

private:
    struct state;
    explicit area_index(std::shared_ptr<state const> s) noexcept : state_{std::move(s)} {}
    std::shared_ptr<state const> state_;
};
}  // namespace cpu

}  // namespace spatial
}  // namespace kiln
