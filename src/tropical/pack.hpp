// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln::tropical {

// Does nothing. Whoever calls it links the pack, also from an archive.
void link_pack() noexcept;

}  // namespace kiln::tropical
