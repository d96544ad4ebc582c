// SPDX-License-Identifier: Apache-2.0
// Stands in for what kiln_embed writes where the products are not linked. Weak, so that the real one wins.
#include "tropical/products.hpp"

namespace kiln::embedded {
[[gnu::weak]] std::span<file const> tropical_products() noexcept { return {}; }
}  // namespace kiln::embedded
