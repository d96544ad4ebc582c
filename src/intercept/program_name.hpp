// SPDX-License-Identifier: Apache-2.0
// What people call a program that knows nothing of Kiln.
#pragma once

#include <string>
#include <string_view>

namespace kiln::intercept {

// From arguments that each end in a zero, as in /proc/self/cmdline: "train", or for an interpreter "python train.py".
[[nodiscard]] std::string program_name(std::string_view arguments);
// Of this process; empty where the system does not tell.
[[nodiscard]] std::string name_of_this_program();

}  // namespace kiln::intercept
