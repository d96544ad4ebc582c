// SPDX-License-Identifier: Apache-2.0
// The check every tier makes last: is this entry what the caller asked for?
#pragma once

#include "store/tier.hpp"

namespace kiln::store {

// nullopt: all as expected.
[[nodiscard]] std::optional<miss> mismatch(label const& about, address const& at, expectation const& expected) noexcept;

}  // namespace kiln::store
