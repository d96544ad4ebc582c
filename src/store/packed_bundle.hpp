// SPDX-License-Identifier: Apache-2.0
// A bundle packed as a whole: what its artifacts have in common, lists of headers above all, is stored once. It is unpacked into memory
// when it is opened, so it is for small ones; see docs/formats/bundle.md.
#pragma once

#include "store/bundle_format.hpp"

namespace kiln::store {

// errc::invalid_argument for one that is too large to be unpacked at every start.
[[nodiscard]] result<base::bytes> pack_bundle(base::byte_span bundle);

// What is not packed comes back as it is.
[[nodiscard]] result<std::unique_ptr<byte_source>> unpacked(std::unique_ptr<byte_source> source);

}  // namespace kiln::store
