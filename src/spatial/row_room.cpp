// SPDX-License-Identifier: Apache-2.0
#include "spatial/row_room.hpp"

#include "spatial/row_shapes.cuh"

namespace kiln::spatial {

using namespace kiln_spatial;

result<geometry_parts> room_for_lines(queue& on, std::size_t rows, std::int64_t lines_and_vertices) {
    geometry_parts out;
    out.kind = family::multilinestring;
    KILN_TRY(out.x, on.room<double>(low_of(lines_and_vertices)));
    KILN_TRY(out.y, on.room<double>(low_of(lines_and_vertices)));
    KILN_TRY(out.offsets[0], on.room<std::int32_t>(rows + 1));
    KILN_TRY(out.offsets[1], on.room<std::int32_t>(std::size_t{high_of(lines_and_vertices)} + 1));
    return out;
}

result<geometry_parts> room_for_multipoints(queue& on, std::size_t rows, std::int64_t points) {
    geometry_parts out;
    out.kind = family::multipoint;
    KILN_TRY(out.x, on.room<double>(static_cast<std::size_t>(points)));
    KILN_TRY(out.y, on.room<double>(static_cast<std::size_t>(points)));
    KILN_TRY(out.offsets[0], on.room<std::int32_t>(rows + 1));
    return out;
}

result<buffer<std::uint8_t>> validity_of_rows(queue& on, kept_layer const& l) {
    auto const bytes = (l.rows() + 7) / 8;
    KILN_TRY(auto out, on.room<std::uint8_t>(bytes));
    KILN_CHECK(on.launch(valid_states{l.states().data(), l.rows(), out.data()}, bytes));
    return out;
}

}  // namespace kiln::spatial
