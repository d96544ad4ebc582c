// SPDX-License-Identifier: Apache-2.0
// The functions of libc that start and collect processes.
#pragma once

#include "stand_ins.hpp"

#include <link.h>

namespace kiln::companion {

// Our own name, as the loader was given it.
void remember_our_name();

// Null where there are too many, or this one is of another make: it is left alone. The loader calls with its lock held.
libc_calls const* calls_of(link_map const* map);

// What stands for a function of that libc; the original itself for most.
void* observed_of_libc(char const* name, void* original, libc_calls const& libc);

}  // namespace kiln::companion
