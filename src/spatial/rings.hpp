// SPDX-License-Identifier: Apache-2.0
// Whether the rings of areas are what relations take them for: borders with a row's interior on one side and its exterior on the other, by
// the even-odd rule as by which ring is a hole of which. So they neither cross nor run over the same piece twice, and lie where they should.
#pragma once

#include "spatial/row_pairs.hpp"

#include <kiln/spatial/validate.hpp>

namespace kiln::spatial {

// Of a noded layer; at most `most` findings, in order of rows, one per row.
[[nodiscard]] std::vector<flawed_row> flawed_rings(host_layer const& noded, row_lookup& rows, std::size_t most);

// What relations say of such a row: "row 7: ...".
[[nodiscard]] error refused_rings(std::string_view side, std::string_view row_and_reason);
// The same of a slice that begins with row `first`.
[[nodiscard]] error refused_rings(std::string_view side, std::size_t first, flawed_row const& what);

}  // namespace kiln::spatial
