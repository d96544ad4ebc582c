// SPDX-License-Identifier: Apache-2.0
//
// One run of a program under Kiln, from the moment everything around it is prepared until it has ended. `kiln run` is two
// programs that share this: the small one people start, which knows the plain options, and the command line, which knows all.
#pragma once

#include "run_environment.hpp"
#include "run_summary.hpp"

namespace kiln::cli {

struct run_session {
    std::vector<std::string> program;
    std::string jit;  // KILN_JIT; empty: as the environment has it
    bool verify = false;
    bool eager = false;  // the real libraries are opened with their stand-ins
    run_talk talk;
};

struct run_outcome {
    int status = 0;        // as waitpid gives it, or ours to end with
    bool is_ours = false;  // it was not started, or what it was answered is not what the compiler says
    bool is_started = true;
    intercept::run_log log;
    run_talk talk;  // as the program's settings have it
};

[[nodiscard]] run_outcome run_in(run_environment& surroundings, base::config const& settings, run_session const& what);

// The program did, and nothing of ours says otherwise.
[[nodiscard]] bool ended_well(run_outcome const& outcome);

// Ends as the program did, perhaps by a signal: everything of ours should be gone.
[[nodiscard]] int end_of(run_outcome const& outcome);

}  // namespace kiln::cli
