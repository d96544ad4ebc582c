// SPDX-License-Identifier: Apache-2.0
// The whole command line as one call. Exported where it is a part of libkiln: see KILN_CLI_INSIDE.
#pragma once

#include <kiln/language.hpp>

// What main() is given, and what it returns. Nothing is thrown.
extern "C" KILN_PUBLIC int kiln_command_line(int count, char** arguments);
