// SPDX-License-Identifier: Apache-2.0
#include "remote/byte_server.hpp"

#include "base/text.hpp"

namespace kiln::remote {

std::string_view name_of(trouble what) noexcept {
    switch (what) {
        case trouble::none: return "none";
        case trouble::connect: return "connect";
        case trouble::timeout: return "timeout";
        case trouble::cut: return "cut";
        case trouble::protocol: return "protocol";
        case trouble::tls: return "tls";
        case trouble::server: return "server";
        case trouble::denied: return "denied";
        case trouble::busy: return "busy";
        case trouble::full: return "full";
        case trouble::too_large: return "too-large";
        case trouble::library: return "library";
    }
    return "unknown";
}

std::string clean_text(std::string_view from_server, std::size_t most) {
    auto out = base::valid_utf8(base::first_characters(from_server, most));
    for (auto& c : out) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    }
    return out;
}

}  // namespace kiln::remote
