// SPDX-License-Identifier: Apache-2.0
// Commands that make things to keep or to ship make them with the toolkit that KILN_CUDA_PATH names, or not at all.
#pragma once

#include "engine/engine_state.hpp"

namespace kiln::cli {

// Where compiling is forbidden no toolkit is needed, and what answers does so as it would answer a program.
inline void insist_on_toolkit(engine& e) {
    auto& s = e.internals();
    s.insists_on_toolkit = s.config.text("KILN_JIT") != "forbid";
}

}  // namespace kiln::cli
