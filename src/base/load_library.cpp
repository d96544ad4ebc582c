// SPDX-License-Identifier: Apache-2.0
#include "base/load_library.hpp"

#include "base/fork_guard.hpp"

#include <dlfcn.h>
#include <optional>

namespace kiln::base {

void* load_library(char const* name, int how) noexcept {
    std::optional<no_fork_meanwhile> whole;
    if (!keeps_fork_away()) whole.emplace();
    return ::dlopen(name, how);
}

}  // namespace kiln::base
