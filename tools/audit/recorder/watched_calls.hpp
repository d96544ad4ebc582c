// SPDX-License-Identifier: Apache-2.0
// Calls of the program that are looked at while they are made: from which line, which memory, which bytes. On the program's own threads,
// inside CUDA: no lock but for a line seen the first time, no allocation but at a thread's first call, no call of CUDA's.
#pragma once

#include "recorder_state.hpp"

namespace kiln::recorder {

enum class watch : int { off, on };
void watch_launches(watch how);
void on_call(CUpti_CallbackDomain domain, CUpti_CallbackId id, CUpti_CallbackData const& call);

}  // namespace kiln::recorder
