// SPDX-License-Identifier: Apache-2.0
#include "intercept/capsule_file.hpp"

#include <algorithm>

namespace kiln::intercept {

namespace {

constexpr std::string_view place_mark = "@KILN-CAPSULE-CACHES@";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    return text;
}

}  // namespace

bool stays_inside(std::string_view name) {
    if (name.empty() || name.find('\0') != name.npos) return false;
    std::filesystem::path const path{name};
    if (path.is_absolute()) return false;
    return std::ranges::none_of(
        path, [](std::filesystem::path const& part) { return part == ".." || part == "." || part.empty(); });
}

bool names_its_place(std::filesystem::path const& file) {
    auto const name = file.filename().native();
    return name.starts_with("__grp__") && name.ends_with(".json");
}

std::string with_mark(std::string text, std::string_view folder) {
    return replaced(std::move(text), folder, place_mark);
}
std::string with_place(std::string text, std::string_view folder) {
    return replaced(std::move(text), place_mark, folder);
}

}  // namespace kiln::intercept
