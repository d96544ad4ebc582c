// SPDX-License-Identifier: Apache-2.0
// What was found in one of two runs and not in the other.
#pragma once

#include "audit/findings.hpp"

#include <utility>

namespace kiln::audit {

struct changed_findings {
    std::vector<finding> gone, fresh;  // of MEDIUM and worse
    std::vector<std::pair<finding, finding>> moved;
};
// Of weight in the one, and in the other next to nothing. Who writes a line above moves those below it: what is gone from a function, and
// new in it, is the same.
[[nodiscard]] changed_findings changes_between(std::vector<finding> const& before, std::vector<finding> const& after);

}  // namespace kiln::audit
