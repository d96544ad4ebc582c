// SPDX-License-Identifier: Apache-2.0
// What happened to a compile of another program, as Kiln's own events: `kiln events`, `status` and `trace` then show it as they
// show everything else. Whoever asked stood still meanwhile, so what was made was waited for, too.
#pragma once

#include "intercept/run_log.hpp"

#include <kiln/event.hpp>

#include <vector>

namespace kiln::intercept {

// In the order they are to be emitted; `now_ns` is the end of what happened.
[[nodiscard]] std::vector<event> events_of(happening const& h, std::int64_t now_ns);

// The event that says what the process is called: reason `program`, detail the name.
[[nodiscard]] event introduction(std::string_view program);

}  // namespace kiln::intercept
