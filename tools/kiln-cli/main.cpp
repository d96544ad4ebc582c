// SPDX-License-Identifier: Apache-2.0
// The program around the command line, whose code is in tools/kiln/.
#include "kiln/command_line.hpp"

int main(int count, char** arguments) { return kiln_command_line(count, arguments); }
