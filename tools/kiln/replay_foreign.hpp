// SPDX-License-Identifier: Apache-2.0
// `kiln replay` of what `kiln run --record` wrote: the requests of programs nobody here wrote, for other architectures.
#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

struct foreign_replay {
    std::vector<std::string> records;
    std::vector<std::string> archs;  // empty: those of the recording
    std::string output;              // a record of what is there now, for 'kiln capsule build'; empty: none
    int jobs = 0;
    bool as_json = false;
};

[[nodiscard]] bool is_foreign_record(std::string const& file);
// The exit status.
[[nodiscard]] int replay_foreign(foreign_replay const& what);

}  // namespace kiln::cli
