// SPDX-License-Identifier: Apache-2.0
// The same request for another architecture: what a program would ask for on another GPU, as far as its options tell.
#pragma once

#include "base/check.hpp"

#include <span>
#include <string>
#include <vector>

namespace kiln::intercept {

// `arch` is as in "sm_90"; a request for PTX ("compute_90") stays one for PTX. errc::unsupported says why the options do not
// allow it.
[[nodiscard]] result<std::vector<std::string>> options_for(std::span<std::string const> options, std::string_view arch);

}  // namespace kiln::intercept
