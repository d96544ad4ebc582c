// SPDX-License-Identifier: Apache-2.0
// Numbers of rows, where a queue runs.
#pragma once

#include "spatial/kept_layer.hpp"

#include <kiln/spatial/measures.hpp>

namespace kiln::spatial {

// errc::invalid_argument where results with a row for each key would be empty rows for the most part, or fill all memory: numbers that stand for
// something else (a postal code, a hash) are not meant.
[[nodiscard]] result<void> require_numbered(std::string_view who, std::size_t keys, std::size_t rows);

class row_measures {
public:
    // The geometries lie where the queue runs, which is kept by reference. One fence.
    [[nodiscard]] static result<row_measures> make(queue& on, geometries const& of);

    [[nodiscard]] result<box_list> bounds() const;
    [[nodiscard]] result<box_list> bounds_by_key(buffer<std::int32_t> const& key, std::size_t keys) const;
    [[nodiscard]] result<std::optional<bounding_box>> total_bounds_sync() const;
    [[nodiscard]] result<buffer<double>> area() const;
    [[nodiscard]] result<buffer<double>> length() const;
    [[nodiscard]] result<location_list> centroid() const;
    [[nodiscard]] result<count_list> counts() const;

private:
    explicit row_measures(queue& on) noexcept : on_{&on} {}
    [[nodiscard]] result<box_list> columns_of(buffer<kiln_spatial::box> const& boxes) const;

    queue* on_;
    kept_layer layer_;
};

}  // namespace kiln::spatial
