// SPDX-License-Identifier: Apache-2.0
// Ages as people write them: "30d", "12h", "45m", "90s".
#pragma once

#include <chrono>
#include <string>

namespace kiln::cli {

// Throws misuse for what is none, and for more than a hundred years: nothing is so old, and nobody's arithmetic holds it.
[[nodiscard]] std::chrono::seconds age_in(std::string const& text);

}  // namespace kiln::cli
