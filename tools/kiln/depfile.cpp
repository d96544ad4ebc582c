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

constexpr int most_links = 40;  // as the system has it

std::string real(fs::path const& folder) {
    std::error_code why;
    auto const out = fs::weakly_canonical(folder, why);
    return why ? folder.native() : out.native();
}

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
    // By both names: where the folder of a link is left out, another folder behind it is at least looked at.
    folders_.insert(folder_above(path).native());
    folders_.insert(folder_above(followed(path)).native());
}

fs::path depfile::followed(fs::path const& path, int links) {
    if (!path.has_relative_path()) return path;
    auto const above = path.parent_path();
    auto const known = known_.find(above.native());
    auto const folder = known != known_.end() ? known->second : followed(above, links);
    known_.emplace(above.native(), folder);
    auto const name = path.filename();
    if (name.empty() || name == ".") return folder;
    if (name == "..") return folder.parent_path();
    auto const here = folder / name;
    std::error_code no_link;
    auto const target = fs::read_symlink(here, no_link);
    if (no_link || links == most_links) return here;
    folders_.insert(folder.native());
    return followed(folder / target, links + 1);  // an absolute one stands for itself
}

void depfile::leave_out(std::string const& output) { outputs_.insert(real(fs::absolute(output).parent_path())); }

std::string depfile::rule_for(std::string const& product) const {
    auto text = escaped_for_make(product) + ":";
    for (auto const& file : looks_) text += " \\\n  " + escaped_for_make(file);
    for (auto const& folder : folders_) {
        // To make "lib (1)" is a member of an archive, however it is written.
        bool const is_a_member = folder.ends_with(')');
        if (!is_a_member && !outputs_.contains(real(folder))) text += " \\\n  " + escaped_for_make(folder);
    }
    return text + "\n";
}

}  // namespace kiln::cli
