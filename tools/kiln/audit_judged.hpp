// SPDX-License-Identifier: Apache-2.0
// A recording read and judged: what the report, the comparison and the health of a test suite begin with.
#pragma once

#include "audit/judgement.hpp"
#include "audit_run.hpp"

namespace kiln::cli {

constexpr int broken = 3;         // judged, and not kept
constexpr int not_judgeable = 4;  // judged, and no answer: CI never passes because nothing was recorded

// The recording outlives the model: the model points into it.
struct judged_recording {
    audit::recording recording;
    audit::model model;
    audit::audit_result result;
};

struct judged_how {
    std::string step = {};  // where one begins
    bool expect_gpu = false;
};
[[nodiscard]] std::unique_ptr<judged_recording> judge(audit::recording recording, judged_how const& how = {},
                                                      audit::budget const& b = {});
[[nodiscard]] std::unique_ptr<judged_recording> read_and_judge(std::filesystem::path const& from,
                                                               judged_how const& how = {}, audit::budget const& b = {});

// What was recorded just now. Where that went away, or there never was a place for it, all that is known is how the program was run, and why
// there is no more: that is a report as well, for who reads the object or the page.
struct recorded_run {
    audit::recording all;
    std::string why_none;
};
[[nodiscard]] recorded_run read_run(recording_place const& place, std::string const& about);

}  // namespace kiln::cli
