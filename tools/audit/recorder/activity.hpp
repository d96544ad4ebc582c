// SPDX-License-Identifier: Apache-2.0
// CUPTI's activity records, turned into records of ours.
#pragma once

#include "cupti_calls.hpp"
#include "recording_file.hpp"

namespace kiln::recorder {

struct activity_counts {
    std::uint64_t timeless = 0;  // GPU operations without a time
};

// Whoever holds the file's lock.
void add_activity(recording_file& to, cupti_calls const& cupti, CUpti_Activity const* record, activity_counts& counts);

}  // namespace kiln::recorder
