// SPDX-License-Identifier: Apache-2.0
// Stands in for what kiln_embed writes where the products are not linked: the build's own tool, unit tests. Weak, so
// that the real one wins.
#include "prims/products.hpp"

namespace kiln::embedded {
[[gnu::weak]] std::span<file const> prims_products() noexcept { return {}; }
}  // namespace kiln::embedded
