// SPDX-License-Identifier: Apache-2.0
//
// The texts a primitive is compiled from, as they travel in the library: its own device text, and the CCCL headers it was
// written for. The headers are packed; they are unpacked at the first compile that needs them.
#pragma once

#include "base/check.hpp"
#include "base/digest.hpp"

#include <kiln/unit.hpp>

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kiln::prims {

// "kiln/prims/scan.cu" and so on.
[[nodiscard]] std::vector<header> const& kernel_headers();
// What the device text `name` ("scan") can include: so that a change to one algorithm leaves the others as they are.
[[nodiscard]] std::vector<header> kernel_headers_of(std::string_view name);
[[nodiscard]] base::digest digest_of(std::span<header const> files);

struct pinned_headers {
    std::vector<header> files;  // by the name they are included with, sorted
    base::digest digest;
};
// Null where none are carried: while Kiln itself is being built. Unpacks them all, once.
[[nodiscard]] std::shared_ptr<pinned_headers const> pinned();
// What pinned() would have as its digest, without unpacking.
[[nodiscard]] std::optional<base::digest> const& pinned_digest();

// The packed form: see docs/formats/pinned-headers.md.
[[nodiscard]] base::bytes pack(std::span<header const> files);
[[nodiscard]] result<pinned_headers> unpack(base::byte_span packed);
[[nodiscard]] result<base::digest> packed_digest(base::byte_span packed);

}  // namespace kiln::prims
