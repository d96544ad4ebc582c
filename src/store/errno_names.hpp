// SPDX-License-Identifier: Apache-2.0
// "enospc" for ENOSPC: counters need stable names, strerror gives prose.
#pragma once

#include <string>

namespace kiln::store {

[[nodiscard]] std::string errno_name(int number);

}  // namespace kiln::store
