// SPDX-License-Identifier: Apache-2.0
//
// What comes closest to an order that found nothing, and what keeps it from being a hit: for `kiln explain` and for errors that
// must be understood where there is no `kiln`. Looks and decodes freely; nothing is counted, renewed or copied.
#pragma once

#include "engine/coordinator.hpp"

namespace kiln::engine_detail {

struct difference {
    std::string field;
    std::string asked;
    std::string kept;
};

struct near_miss {
    artifact what;
    std::string tier;
    std::vector<difference> differences;
};

// By family in every tier, and by name in bundles; where a directory is given, by name in that cache too, which reads all of its
// entries' headers. What differs least comes first, of equals the nearest architecture.
[[nodiscard]] std::vector<near_miss> near_misses(store::store& where, order const& asked,
                                                 std::optional<std::filesystem::path> const& cache = {});

// "sm_86 cubin (nvrtc 31b78904, in bundle), held for sm_80, sm_86 and sm_90", with what differs besides the target; "nothing of this
// unit" where there is nothing.
[[nodiscard]] std::string describe_nearest(store::store& where, order const& asked);

}  // namespace kiln::engine_detail
