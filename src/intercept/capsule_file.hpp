// SPDX-License-Identifier: Apache-2.0
// Files of frameworks in a capsule: which names are let out of one, and the files that name the folder they lie in.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kiln::intercept {

// A name from somebody else's file: never out of the folder.
[[nodiscard]] bool stays_inside(std::string_view name);

// Triton's lists of what belongs together hold absolute paths. In a capsule a mark stands for the folder of all caches.
[[nodiscard]] bool names_its_place(std::filesystem::path const& file);
// `list` is where it lies below that folder, and so do the files it names: what is before that is where the caches were when it was
// written, and they may have been moved since.
[[nodiscard]] std::string with_mark(std::string text, std::filesystem::path const& list);
[[nodiscard]] std::string with_place(std::string text, std::string_view folder);

}  // namespace kiln::intercept
