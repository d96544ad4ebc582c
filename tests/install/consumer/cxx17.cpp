// SPDX-License-Identifier: Apache-2.0
#include <kiln/kiln.h>

static_assert(__cplusplus < 202002L, "kiln::c asks for no newer C++ than the project has");

int main() { return kiln_c_version() == KILN_C_VERSION ? 0 : 1; }
