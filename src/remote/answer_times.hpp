// SPDX-License-Identifier: Apache-2.0
// How long answers took, as counters that many processes add up: one for each of some lengths, each half as long again as the one before,
// or a third.
#pragma once

#include "store/statistics.hpp"

#include <chrono>

namespace kiln::remote {

// The counter, of those of the fleet, that an answer after so long belongs to.
[[nodiscard]] std::string answer_time_counter(std::chrono::nanoseconds took);
[[nodiscard]] bool is_answer_time(std::string_view counter) noexcept;
// That part of all answers took no longer, in milliseconds. Nothing where none has come.
[[nodiscard]] std::optional<double> answer_quantile_ms(store::counter_map const& fleet, double part);

}  // namespace kiln::remote
