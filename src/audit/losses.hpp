// SPDX-License-Identifier: Apache-2.0
// What is known to be missing of a recording: processes that could write no more, and those that nobody saw.
#pragma once

#include "audit/model.hpp"

#include <string>
#include <vector>

namespace kiln::audit {

// Each in a sentence.
[[nodiscard]] std::vector<std::string> losses_of(model const& m);

}  // namespace kiln::audit
