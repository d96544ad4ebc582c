// SPDX-License-Identifier: Apache-2.0
// From the call to the first result in a new process, and all named specialisations from source.
#pragma once

#include "prims/report.hpp"

#include <kiln/target.hpp>

namespace kiln::bench {

// Runs this program once more per measurement: with an empty cache, with what the run before left there, and for
// what ships. The median of `rounds`.
void measure_first_calls(report& to, int rounds);

// The body of such a run: makes the handle, calls it, waits. Prints milliseconds; context and data were there before.
int first_call(std::string const& name, int seed);

// Every named specialisation compiled in full with an empty cache, all at once.
void measure_sources(report& to, kiln::arch for_arch);

}  // namespace kiln::bench
