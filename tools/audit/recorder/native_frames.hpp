// SPDX-License-Identifier: Apache-2.0
//
// The native stack of the calling thread, for programs without Python: an object and an offset per frame, which `kiln audit` turns into
// lines when the program has ended. The unwinder takes microseconds, so it runs once for a place: a stack is known again by its depth and by
// the return addresses that still lie where they lay.
#pragma once

#include "recording_file.hpp"
#include "thread_facts.hpp"

namespace kiln::recorder {

// A string of the file's, "object\t+offset\t\n" for each frame, innermost first, without the driver's own; 0: none. Takes the file's lock when a
// stack is seen the first time by a thread. KILN_AUDIT_STACKS=none turns it off.
[[nodiscard]] std::uint32_t native_stack(recording_file& file, known_stacks& seen);

}  // namespace kiln::recorder
