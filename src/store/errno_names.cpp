// SPDX-License-Identifier: Apache-2.0
#include "store/errno_names.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace kiln::store {

std::string errno_name(int number) {
    auto const* const name = ::strerrorname_np(number);
    if (name == nullptr) return "unknown";
    std::string out = name;
    std::transform(out.begin(), out.end(), out.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

// "/a/b: No space left on device" → "No space left on device: /a/b". Longer paths than an event holds would hide the reason.
std::string reason_first(std::string_view message) {
    auto const end = message.starts_with('/') ? message.find(": ") : message.npos;
    if (end == message.npos) return std::string{message};
    std::string out{message.substr(end + 2)};
    return out.append(": ").append(message.substr(0, end));
}

}  // namespace kiln::store
