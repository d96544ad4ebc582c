// SPDX-License-Identifier: Apache-2.0
//
// The bundle that Kiln's own build made of this pack with Kiln. A program linked without it (the one that makes it, unit
// tests) has none, and compiles everything.
#pragma once

#include "embedded/tropical_kernels.hpp"

namespace kiln::embedded {
[[nodiscard]] std::span<file const> tropical_products() noexcept;
}
