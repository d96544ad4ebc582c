// SPDX-License-Identifier: Apache-2.0
#pragma once

// Does nothing. Whoever calls it links the pack, also from an archive.
extern "C" void kiln_has_spatial();
