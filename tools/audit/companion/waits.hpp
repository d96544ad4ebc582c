// SPDX-License-Identifier: Apache-2.0
// The functions of libc that collect children.
#pragma once

#include "stand_ins.hpp"

namespace kiln::companion {

// What stands for one of them; the original itself for others.
void* observed_wait(char const* name, void* original, libc_calls const& libc);

}  // namespace kiln::companion
