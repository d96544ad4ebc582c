// SPDX-License-Identifier: Apache-2.0
// Directories into which pip installs, found without running Python.
#pragma once

#include "cuda/library_search.hpp"

namespace kiln::cuda {

// Existing site-packages and dist-packages that have an `nvidia` folder: of the virtual environment, of python3 on PATH
// (through symlinks and pyenv's shims), of the user, of the system. Each once, the most specific first.
[[nodiscard]] std::vector<std::filesystem::path> python_places(search_environment const& environment);

// Sorted, newest version first: python3.12 before python3.9. Empty where the directory cannot be read.
[[nodiscard]] std::vector<std::filesystem::path> subdirectories(std::filesystem::path const& of,
                                                                std::string_view prefix = {});

}  // namespace kiln::cuda
