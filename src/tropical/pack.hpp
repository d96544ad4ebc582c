// SPDX-License-Identifier: Apache-2.0
#pragma once

// Does nothing. Whoever calls it, or has the linker ask for it (src/CMakeLists.txt), links the pack, also from an archive.
extern "C" void kiln_has_tropical();
