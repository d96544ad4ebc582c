// SPDX-License-Identifier: Apache-2.0
#include "prims/products.hpp"

namespace kiln::prims {

namespace {

base::byte_span product(std::string_view name) noexcept {
    for (auto const& f : embedded::prims_products()) {
        if (f.name == name) return base::as_bytes(f.data);
    }
    return {};
}

}  // namespace

base::byte_span embedded_cubins() noexcept { return product("cubins.kiln"); }
base::byte_span embedded_headers() noexcept { return product("headers.zst"); }

}  // namespace kiln::prims
