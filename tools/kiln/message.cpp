// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include <cstdio>
#include <string>

namespace kiln::cli {

void complain(std::string_view text) {
    // Words of files are in it: whoever wrote those does not write to this terminal.
    std::string shown{text};
    for (auto& c : shown) {
        bool const is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
        if (is_control && c != '\n' && c != '\t') c = '?';
    }
    std::fprintf(stderr, "kiln: %s\n", shown.c_str());
}

void complain(error const& e) {
    complain(e.message());
    if (!e.log().empty()) std::fprintf(stderr, "%s%s", e.log().c_str(), e.log().ends_with('\n') ? "" : "\n");
}

}  // namespace kiln::cli
