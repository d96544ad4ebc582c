// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kiln::bench_warm {

// Scan, sort and reduce over a million integers, checked: "named" by operators that ship, "own" by operators of its own,
// "plain" the same compiled in this process; "context" only makes one; "stamped" is "named" and tells where the time went.
// The exit status of the process.
[[nodiscard]] int run_child(std::string const& mode);

}  // namespace kiln::bench_warm
