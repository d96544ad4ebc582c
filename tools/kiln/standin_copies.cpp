// SPDX-License-Identifier: Apache-2.0
#include "standin_copies.hpp"

#include "base/files.hpp"
#include "run_environment.hpp"

#include <array>
#include <string_view>

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

fs::path folder_in(fs::path const& cache) { return cache / "run" / "standins"; }

// "0123456789abcdef-libnvrtc.so.13", "0123456789abcdef.bridge"; empty for what is neither.
fs::path template_of(fs::path const& copy) {
    constexpr std::size_t id = 16;
    auto const name = copy.filename().native();
    if (copy.extension() == ".bridge") return "bridge.so";
    return name.size() > id + 1 && name[id] == '-' ? fs::path{name.substr(id + 1)} : fs::path{};
}

// How long the text at `at` is that a bridge has in place of its template's: the room for a run path or for a library's name.
std::size_t room_at(std::string_view original, std::size_t at) {
    for (auto const mark : {"KILN_RUNPATH_"sv, "KILN_NEEDED_"sv}) {
        if (original.substr(at).starts_with(mark)) return std::min(original.find('\0', at), original.size()) - at;
    }
    return 0;
}

// An export that the real library lacks has lost its first letter.
bool is_hidden_name(char is, char was) { return is == '\1' && (was == 'n' || was == '_'); }

bool is_made_of(std::string_view original, std::string_view copy) {
    for (std::size_t at = 0; at < original.size(); ++at) {
        if (original[at] == 'K') at += room_at(original, at);
        if (at < original.size() && copy[at] != original[at] && !is_hidden_name(copy[at], original[at])) return false;
    }
    return true;
}

bool is_damaged(fs::path const& copy) {
    auto const original = base::read_file(standin_folder() / template_of(copy));
    if (!original || !*original) return false;
    auto const data = base::read_file(copy);
    if (!data || !*data) return true;
    auto const is = base::as_text(**data), should_be = base::as_text(**original);
    if (!is.starts_with("\177ELF")) return true;
    return is.size() == should_be.size() && !is_made_of(should_be, is);
}

}  // namespace

std::vector<fs::path> damaged_standins(fs::path const& cache) {
    std::vector<fs::path> out;
    std::error_code failed;
    for (fs::directory_iterator at{folder_in(cache), failed}, end; !failed && at != end; at.increment(failed)) {
        if (!template_of(at->path()).empty() && is_damaged(at->path())) out.push_back(at->path());
    }
    return out;
}

void remove_standins(fs::path const& cache) {
    std::error_code ignored;
    fs::remove_all(folder_in(cache), ignored);
}

}  // namespace kiln::cli
