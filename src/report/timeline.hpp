// SPDX-License-Identifier: Apache-2.0
// A trace as a picture: one row per thread and compile process, spans along the time, marks left out.
#pragma once

#include "report/trace.hpp"

namespace kiln::report {

[[nodiscard]] std::string timeline_svg(trace const& t, std::string_view title);

}  // namespace kiln::report
