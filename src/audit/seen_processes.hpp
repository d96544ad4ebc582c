// SPDX-License-Identifier: Apache-2.0
// Which processes there were, from what each of them told of itself and of its children.
#pragma once

#include "audit/model.hpp"

namespace kiln::audit {

// Every process that was seen to begin, to be asked for, or to end. `runner`: who started the program; 0: not known.
[[nodiscard]] std::vector<child_process> processes_seen(recording const& from, std::uint32_t runner);

}  // namespace kiln::audit
