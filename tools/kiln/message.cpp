// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include <cstdio>
#include <string>

namespace kiln::cli {

void complain(std::string_view text) {
    // Words of files are in it: whoever wrote those does not write to this terminal.
    std::string shown{text};
    for (std::size_t i = 0; i < shown.size(); ++i) {
        auto const c = static_cast<unsigned char>(shown[i]);
        bool const is_control = c < 0x20 || c == 0x7f;
        if (is_control && c != '\n' && c != '\t') shown[i] = '?';
        // U+0080 to U+009F, two bytes each, are control characters, too.
        auto const next = i + 1 < shown.size() ? static_cast<unsigned char>(shown[i + 1]) : 0u;
        if (c == 0xc2 && next >= 0x80 && next < 0xa0) shown.replace(i, 2, "?");
    }
    std::fprintf(stderr, "kiln: %s\n", shown.c_str());
}

void complain(error const& e) {
    complain(e.message());
    if (!e.log().empty()) std::fprintf(stderr, "%s%s", e.log().c_str(), e.log().ends_with('\n') ? "" : "\n");
}

}  // namespace kiln::cli
