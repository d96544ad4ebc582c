// SPDX-License-Identifier: Apache-2.0
// Where files lie that come with Kiln: lib/kiln of an installation or of a build tree.
#pragma once

#include <filesystem>
#include <vector>

namespace kiln::engine_detail {

// Folders to look in: beside the library this code was loaded from, or in the prefix of the program it is linked into.
[[nodiscard]] std::vector<std::filesystem::path> shipped_folders();

}  // namespace kiln::engine_detail
