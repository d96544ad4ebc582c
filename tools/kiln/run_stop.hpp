// SPDX-License-Identifier: Apache-2.0
//
// A program that was stopped: who started us sees us stopped as it is, and who continues either continues both. For signal handlers.
#pragma once

#include <sys/types.h>

namespace kiln::cli {

// Returns when one of the two was continued, or when the program has ended. At once where we cannot be stopped, or where nobody could see that
// the program goes on: it is then stopped alone. Where nobody could stop it without us, the first process of a container, it is continued.
void stop_with(pid_t program, int signal) noexcept;

// By a signal that stops, as if it were not handled.
void stop_by(int signal) noexcept;

}  // namespace kiln::cli
