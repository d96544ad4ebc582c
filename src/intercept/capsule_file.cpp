// SPDX-License-Identifier: Apache-2.0
#include "intercept/capsule_file.hpp"

#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace kiln::intercept {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view place_mark = "@KILN-CAPSULE-CACHES@";

// The text as it is where it is no list.
template <class Change>
std::string with_paths_changed(std::string text, Change change) {
    auto list = ordered_json::parse(text, nullptr, false);
    if (!list.is_object() || !list.contains("child_paths") || !list["child_paths"].is_object()) return text;
    for (auto& one : list["child_paths"]) {
        if (one.is_string()) one = change(one.template get<std::string>());
    }
    return base::json_text(list);
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

std::string with_mark(std::string text, std::filesystem::path const& list) {
    auto const own = '/' + list.parent_path().generic_string() + '/';
    return with_paths_changed(std::move(text), [&](std::string path) {
        auto const at = path.rfind(own);
        return at == path.npos ? path : std::string{place_mark} + path.substr(at);
    });
}

std::string with_place(std::string text, std::string_view folder) {
    return with_paths_changed(std::move(text), [&](std::string path) {
        return path.starts_with(place_mark) ? std::string{folder} + path.substr(place_mark.size()) : path;
    });
}

}  // namespace kiln::intercept
