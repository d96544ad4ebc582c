// SPDX-License-Identifier: Apache-2.0
//
// Names in the environment that look like settings and are none: a misspelt one has no effect, and nobody would know.
#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

// "KILN_CACHEDIR is not a setting; did you mean 'KILN_CACHE_DIR'?", one for each, in the order of names.
[[nodiscard]] std::vector<std::string> unknown_variables();

}  // namespace kiln::cli
