// SPDX-License-Identifier: Apache-2.0
// What operations need, by name: as their variants say it, and as requirements declare it beside that.
#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

struct declared {
    std::string operation;
    std::string pack;
    std::vector<std::string> when = {};  // facts of which one must be present; none: always
    std::vector<std::string> names;
};

// Of all packs, in their order, then of the program itself. Names that no pack has are left out: they depend on a type or
// an operator and are made when they are needed.
[[nodiscard]] std::vector<declared> declarations();

}  // namespace kiln::cli
