// SPDX-License-Identifier: Apache-2.0
#include "prims/products.hpp"

#include <span>
#include <string_view>

namespace kiln::embedded {
struct file {
    std::string_view name;
    std::string_view data;
};
// Defined only where the products are linked in.
[[gnu::weak]] std::span<file const> prims_products() noexcept;
}  // namespace kiln::embedded

namespace kiln::prims {

namespace {

base::byte_span product(std::string_view name) noexcept {
    if (&embedded::prims_products == nullptr) return {};
    for (auto const& f : embedded::prims_products()) {
        if (f.name == name) return base::as_bytes(f.data);
    }
    return {};
}

}  // namespace

base::byte_span embedded_cubins() noexcept { return product("cubins.kiln"); }
base::byte_span embedded_headers() noexcept { return product("headers.zst"); }

}  // namespace kiln::prims
