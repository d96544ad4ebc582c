// SPDX-License-Identifier: Apache-2.0
// A file of our own in a folder where others may have put things.
#pragma once

#include "base/files.hpp"

namespace kiln::base {

// As replace_file, but nothing is followed: whatever has the name, a link or a FIFO, is replaced itself. A directory stays, and is an error.
[[nodiscard]] result<void> replace_name(std::filesystem::path const& path, byte_span data, unsigned mode = 0600);

}  // namespace kiln::base
