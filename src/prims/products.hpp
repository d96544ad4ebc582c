// SPDX-License-Identifier: Apache-2.0
//
// What Kiln's own build made with Kiln and put into the library: ready cubins and the pinned headers. A program linked
// without them (the one that makes them, unit tests) has none, and compiles everything.
#pragma once

#include "base/bytes.hpp"

#ifndef KILN_EMBEDDED_FILE
#define KILN_EMBEDDED_FILE
namespace kiln::embedded {
struct file {
    std::string_view name;
    std::string_view data;
};
}  // namespace kiln::embedded
#endif

namespace kiln::embedded {
[[nodiscard]] std::span<file const> prims_products() noexcept;
}

namespace kiln::prims {

// A bundle of cubins; empty where there is none.
[[nodiscard]] base::byte_span embedded_cubins() noexcept;
// Packed headers; empty where there are none.
[[nodiscard]] base::byte_span embedded_headers() noexcept;

}  // namespace kiln::prims
