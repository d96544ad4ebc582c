// SPDX-License-Identifier: Apache-2.0
// For tools: asks the tiers that answer later and waits for their last word.
#pragma once

#include "store/store.hpp"

namespace kiln::store {

// Until `deadline` at most, whatever becomes of the tiers: then nothing was found, and `said` tells why.
[[nodiscard]] far_answer ask_sync(store& where, question const& what, base::time_point deadline);

}  // namespace kiln::store
