// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kiln::warmup {

// KILN_PROFILE: what the last run needed is read and brought in while this one starts, and what is new is recorded.
void start_process_profile(std::string const& file);

}  // namespace kiln::warmup
