// SPDX-License-Identifier: Apache-2.0
// A bundle packed as a whole: what its artifacts have in common, lists of headers above all, is stored once. It is unpacked into memory
// when it is opened, so it is for small ones; see docs/formats/bundle.md.
#pragma once

#include "store/bundle_format.hpp"

namespace kiln::store {

// errc::invalid_argument for one that is too large to be unpacked at every start.
[[nodiscard]] result<base::bytes> pack_bundle(base::byte_span bundle);

// By its first bytes.
[[nodiscard]] bool is_packed(base::byte_span head) noexcept;
// The bundle in it, in memory.
[[nodiscard]] result<std::unique_ptr<byte_source>> unpack_bundle(byte_source const& packed);

}  // namespace kiln::store
