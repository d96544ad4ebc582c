// SPDX-License-Identifier: Apache-2.0
// How errors are told: "enospc" for ENOSPC, because counters need stable names and strerror gives prose; and the reason
// before the path, because events are short.
#pragma once

#include <string>
#include <string_view>

namespace kiln::store {

[[nodiscard]] std::string errno_name(int number);
[[nodiscard]] std::string reason_first(std::string_view message);

}  // namespace kiln::store
