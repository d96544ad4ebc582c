// SPDX-License-Identifier: Apache-2.0
//
// The copies of stand-ins that the loader's hook makes in the cache (tools/intercept/hook.c), one for each library and place. The hook
// looks at each before it is used and makes it anew where it is not as it should be; here they are looked at for people.
#pragma once

#include <filesystem>
#include <vector>

namespace kiln::cli {

// Those of this build that are not as the hook makes them. What another build made is nobody's any more, and left out.
[[nodiscard]] std::vector<std::filesystem::path> damaged_standins(std::filesystem::path const& cache);

// Programs that run go on: what they have mapped stays theirs, and who comes next makes new ones.
void remove_standins(std::filesystem::path const& cache);

}  // namespace kiln::cli
