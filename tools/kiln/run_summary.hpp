// SPDX-License-Identifier: Apache-2.0
// What `kiln run` says at the end.
#pragma once

#include "intercept/run_log.hpp"

#include <set>

namespace kiln::cli {

struct run_summary {
    std::uint64_t answered = 0, joined = 0, made = 0, not_kept = 0, too_large = 0, own_names = 0, failed = 0,
                  forwarded = 0, left_alone = 0, forbidden = 0, verified = 0, different = 0;
    std::chrono::milliseconds saved{};
    std::chrono::microseconds answering{};
    std::chrono::microseconds making{};
    std::chrono::microseconds waiting{};  // of what was answered: for others that were making it
    std::set<std::string> why_own_names, why_forwarded, why_left_alone;
};

[[nodiscard]] run_summary summed(std::vector<intercept::happening> const& all);

struct run_talk {
    bool verbose = false;  // a line for each compile
    bool warns = false;    // a line for each that was made
    bool quiet = false;    // no line at the end
    bool forbids = false;  // nothing should be compiled
};
void tell(run_talk const& how, std::vector<intercept::happening> const& all);

}  // namespace kiln::cli
