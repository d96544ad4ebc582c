// SPDX-License-Identifier: Apache-2.0
// A file that is part of the program: what kiln_embed (cmake/KilnEmbed.cmake) makes. Lives as long as the program.
#pragma once

#include <span>
#include <string_view>

namespace kiln::embedded {

struct file {
    std::string_view name;  // without its folder
    std::string_view data;
};

// Empty: there is none of this name.
[[nodiscard]] constexpr std::string_view find_file(std::span<file const> all, std::string_view name) noexcept {
    for (auto const& f : all) {
        if (f.name == name) return f.data;
    }
    return {};
}

}  // namespace kiln::embedded
