// SPDX-License-Identifier: Apache-2.0
// Overlay, dissolve and make_valid of layers that are too large to be worked on at once: the same results. Segments are divided
// first, all of them and round by round as those of a layer that fits (row_chunks.hpp); then nothing moves any more, and results
// are drawn a few rows at a time.
#pragma once

#include "spatial/overlay/overlay.hpp"
#include "spatial/overlay/row_chunks.hpp"

namespace kiln::spatial {

// Operands lie at home; results come to where `results` runs.
struct chunked_call {
    chunk_places in;
    queue& results;
};
// errc::out_of_memory where one row with what it meets, or one key, needs more than the work may take.
[[nodiscard]] result<overlay_rows> overlaid_in_chunks(chunked_call const& by, geometries const& left,
                                                      geometries const& right, overlay_kind what,
                                                      overlay_options const& how = {});
[[nodiscard]] result<geometries> dissolved_in_chunks(chunked_call const& by, geometries const& of,
                                                     buffer<std::int32_t> const& key, std::size_t keys);
[[nodiscard]] result<mended_rows> mended_in_chunks(chunked_call const& by, geometries const& of);

}  // namespace kiln::spatial
