// SPDX-License-Identifier: Apache-2.0
#include "depfile.hpp"

#include <filesystem>

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

std::string escaped_for_make(std::string_view path) {
    std::string out;
    for (char const c : path) {
        if (c == ' ' || c == '#') out += '\\';
        if (c == '$') out += '$';
        out += c;
    }
    return out;
}

fs::path absolute(fs::path const& path) { return fs::absolute(path).lexically_normal(); }

// The first that is there on the way up.
fs::path folder_above(fs::path const& file) {
    std::error_code ignored;
    auto out = file.parent_path();
    while (out.has_relative_path() && !fs::is_directory(out, ignored)) out = out.parent_path();
    return out;
}

}  // namespace

void depfile::add_look(std::string const& file) {
    // Not normalised: "link/../a.h" means what the system means by it.
    auto const path = fs::absolute(file);
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) looks_.insert(path.native());
    folders_.insert(folder_above(path).native());
    add_folders_of_links(path.native());
}

void depfile::add_folders_of_links(std::string const& file) {
    for (fs::path at{file}; at.has_relative_path(); at = at.parent_path()) {
        if (at != file && !seen_.insert(at.native()).second) return;
        std::error_code ignored;
        if (fs::is_symlink(at, ignored)) folders_.insert(at.parent_path().native());
    }
}

void depfile::leave_out(std::string const& output) { outputs_.insert(absolute(output).parent_path().native()); }

std::string depfile::rule_for(std::string const& product) const {
    auto text = escaped_for_make(product) + ":";
    for (auto const& file : looks_) text += " \\\n  " + escaped_for_make(file);
    for (auto const& folder : folders_) {
        if (!outputs_.contains(absolute(folder).native())) text += " \\\n  " + escaped_for_make(folder);
    }
    return text + "\n";
}

}  // namespace kiln::cli
