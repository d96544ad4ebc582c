// SPDX-License-Identifier: Apache-2.0
// A plugin that uses Kiln inside a program that may not: what goes wrong in it is thrown at the program.
#include <kiln/target.hpp>

extern "C" __attribute__((visibility("default"))) void parse_nonsense() {
    static_cast<void>(kiln::target::parse("no such architecture").value());
}
