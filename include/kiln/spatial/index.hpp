// SPDX-License-Identifier: Apache-2.0
//
// An index over areas that tells which of them a point is in: built once, asked often, by any number of threads. O(1) per point
// however many vertices the areas have, and exact. It lies where its geometries do, on the host or on a device, and keeps
// what it needs of them. Building on a device waits a few times for sizes; <kiln/spatial/join.hpp> asks it.
//
//     auto const zones = spatial::area_index::make(stream, zones_on_device).value();
//     auto const ids   = spatial::join_first(stream, places_on_device, zones, spatial::predicate::within).value();
#pragma once

#include <kiln/spatial/geometry.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

class area_index {
public:
    // Rows that are not areas contain nothing.
    [[nodiscard]] static result<area_index> make(stream_ref on, geometries const& areas);

    [[nodiscard]] std::size_t rows() const noexcept;
    [[nodiscard]] residency where() const noexcept;
    [[nodiscard]] int device() const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept;
    // Bytes that building it may need at most, for areas without crowded cells; about twice what is kept.
    [[nodiscard]] static std::size_t estimate(geometries const& areas) noexcept;

    struct state;
    [[nodiscard]] state const& internals() const noexcept { return *state_; }

private:
    explicit area_index(std::shared_ptr<state const> s) noexcept : state_{std::move(s)} {}
    std::shared_ptr<state const> state_;
};

}  // namespace spatial
}  // namespace kiln
