// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kiln::base {

// What /proc/PID/stat, or that of a thread, says from the state on: "S 17 ...". Empty where it says nothing. Before it stands, in
// parentheses, whatever program or thread is called: "a) R (b" too.
[[nodiscard]] constexpr std::string_view state_and_more(std::string_view stat) noexcept {
    auto const end = stat.rfind(") ");
    return end == stat.npos ? std::string_view{} : stat.substr(end + 2);
}

}  // namespace kiln::base
