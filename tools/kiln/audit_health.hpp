// SPDX-License-Identifier: Apache-2.0
// `kiln audit health`: how much of a test suite ran on the GPU, held to a baseline.
#pragma once

#include "command.hpp"

namespace kiln::cli {

void add_audit_health(CLI::App& audit, std::vector<command>& commands);

}  // namespace kiln::cli
