// SPDX-License-Identifier: Apache-2.0
// What is known to be missing of a recording: processes that could write no more, and those that nobody saw.
#pragma once

#include "audit/model.hpp"

#include <span>
#include <string>
#include <vector>

namespace kiln::audit {

// Each in a sentence.
[[nodiscard]] std::vector<std::string> losses_of(model const& m);
[[nodiscard]] bool has_lost_many(model const& m);
// Whether so much is missing that nothing is judged by the rest (R91).
[[nodiscard]] bool is_cut_short(model const& m, std::span<std::string const> losses);
// Why something may have run on a GPU though nothing was seen to, each in a sentence: what was not looked at, and who is not done yet.
[[nodiscard]] std::vector<std::string> doubts_of(model const& m);

}  // namespace kiln::audit
