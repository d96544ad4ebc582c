// SPDX-License-Identifier: Apache-2.0
// Replacing a small file that nobody misses after a power failure: counters, memories, lists.
#pragma once

#include "base/files.hpp"

namespace kiln::base {

// As replace_file for readers: they see the old file or the new one, never a part. After a power failure it may be empty. In return
// nothing is written to the disk at once: ext4 does that when a file is renamed over another, and it takes milliseconds, which
// processes that wait for one another's locks pay one after the other.
[[nodiscard]] result<void> replace_quickly(std::filesystem::path const& path, byte_span data, unsigned mode = 0600);

}  // namespace kiln::base
