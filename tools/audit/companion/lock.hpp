// SPDX-License-Identifier: Apache-2.0
// Processes that lock themselves in (seccomp), where a call that they did not allow is their end.
#pragma once

#include "stand_ins.hpp"

namespace kiln::companion {

// Whether we may ask the system for anything: whoever is called by the program asks here first of all.
bool may_call();
// Whether the process asked for Landlock's rules: what access() says does not hold for open() then.
bool may_be_walled_in();
// The lock it had when it began, a container's own for one.
void remember_lock();

// What stands for a function by which a lock is set; the original itself for others.
void* observed_lock(char const* name, void* original, libc_calls const& libc);

}  // namespace kiln::companion
