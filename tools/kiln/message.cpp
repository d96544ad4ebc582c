// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include <cstdio>

namespace kiln::cli {

void complain(std::string_view text) {
    std::fprintf(stderr, "kiln: %.*s\n", static_cast<int>(text.size()), text.data());
}

void complain(error const& e) {
    complain(e.message());
    if (!e.log().empty()) std::fprintf(stderr, "%s%s", e.log().c_str(), e.log().ends_with('\n') ? "" : "\n");
}

}  // namespace kiln::cli
