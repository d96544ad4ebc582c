// SPDX-License-Identifier: Apache-2.0
// What status() would have said in a process, from the events it wrote.
#pragma once

#include "report/event_file.hpp"

#include <kiln/status.hpp>

namespace kiln::cli {

// `now_ns` on its monotonic clock, 0: the time of its last event.
[[nodiscard]] warm_status status_of(report::event_file const& from, std::int64_t pid, std::int64_t now_ns = 0);

}  // namespace kiln::cli
