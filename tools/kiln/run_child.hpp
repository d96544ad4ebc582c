// SPDX-License-Identifier: Apache-2.0
//
// The program of `kiln run` as a child: signals pass through to it, and who waits for us sees what became of it. While it runs,
// compiles are made for it and headers read ahead.
#pragma once

#include "run_ahead.hpp"
#include "run_workers.hpp"

#include <functional>

namespace kiln::cli {

// The status as waitpid gives it. errc::not_found where the program could not be started.
[[nodiscard]] result<int> run_to_its_end(std::vector<std::string> const& program,
                                         std::vector<std::string> const& environment, run_workers& workers,
                                         run_ahead& ahead);

// What is done beside a program, and once it has ended: no signal that is passed on ends us before that is done.
struct beside_program {
    std::function<void(int)> meanwhile = [](int) {};   // until that descriptor can be read; -1: there is none to be had
    std::function<void(int)> afterwards = [](int) {};  // of its status
};
// The same for a program that nobody compiles for.
[[nodiscard]] result<int> run_alone(std::vector<std::string> const& program,
                                    std::vector<std::string> const& environment, beside_program const& beside);

// Ends by the signal that ended the program; comes back with its exit status where none did.
[[nodiscard]] int end_like(int status);

// Why the loader will not ask us in this program; no reason when it will.
struct out_of_reach {
    std::string reason;
    bool is_harmed = false;  // it would not start with us
};
[[nodiscard]] out_of_reach why_out_of_reach(std::string const& program);

// GLIBC_TUNABLES with room for what a program's libraries keep for each thread. Where there is an auditor (LD_AUDIT), glibc lays that out
// before it has loaded them, and a library that needs more than the little which is left then, jemalloc for one, does not load.
[[nodiscard]] std::string with_room_for_threads(std::string tunables);

}  // namespace kiln::cli
