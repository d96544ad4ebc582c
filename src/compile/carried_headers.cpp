// SPDX-License-Identifier: Apache-2.0
#include "compile/carried_headers.hpp"

#include "base/digest.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <set>

namespace kiln::compile {

namespace {

constexpr std::size_t most_directories = 1000;

// What a list of names tells of. A folder counts by any name; hidden ones, of editors and version control, come and go.
enum class told_as { file, folder };
bool is_told(std::string_view name, told_as as) {
    constexpr std::string_view endings[] = {"",     ".h",   ".hh",  ".hpp", ".hxx", ".cuh", ".inc",
                                            ".inl", ".ipp", ".tpp", ".tcc", ".def", ".stdh"};
    if (name.empty() || name.starts_with('.')) return false;
    auto const ending = name.substr(std::min(name.size(), name.rfind('.')));
    return as == told_as::folder || std::ranges::find(endings, ending) != std::end(endings);
}
// What a build puts beside a source that it made itself: no compiler reads it, and the next build would come to another result.
bool is_program(std::filesystem::path const& file) {
    if (file.has_extension()) return false;
    std::ifstream in{file, std::ios::binary};
    std::array<char, 4> begin{};
    return in.read(begin.data(), begin.size()) && std::string_view{begin.data(), begin.size()} ==
                                                      "\x7f"
                                                      "ELF";
}
std::string line_of(std::string_view name) { return base::sha256_of(name).hex().substr(0, 8) + "\n"; }

// The number in front of `after` in "i3/a.h" or "2 i0/b.h", and what follows it.
struct numbered {
    std::size_t number;
    std::string_view rest;
};
std::optional<numbered> number_before(char after, std::string_view text) {
    numbered out{0, {}};
    auto const* const last = text.data() + text.size();
    auto const [end, why] = std::from_chars(text.data(), last, out.number);
    if (why != std::errc{} || end == last || *end != after) return std::nullopt;
    out.rest = text.substr(static_cast<std::size_t>(end + 1 - text.data()));
    return out;
}

}  // namespace

std::string place_of(dependency const& d) {
    switch (d.from) {
        case dependency::root::source_directory: return "s/" + d.path;
        case dependency::root::include_directory: return fmt::format("i{}/{}", d.index, d.path);
        case dependency::root::absolute: return d.path;
        case dependency::root::toolkit: break;
    }
    return {};
}

// From the root down: the first name that its folder did not have decides.
bool had_no_such_name(folder_names const& names, std::string_view place) {
    for (auto slash = place.find('/'); slash != place.npos;) {
        auto const there = names.find(place.substr(0, slash));
        if (there == names.end()) return false;
        auto const next = place.find('/', slash + 1);
        auto const name = place.substr(slash + 1, next == place.npos ? next : next - slash - 1);
        slash = next;
        if (name == "." || name == "..") continue;
        if (!is_told(name, next == place.npos ? told_as::file : told_as::folder)) return false;
        if (there->second.find(line_of(name)) == std::string::npos) return true;
    }
    return false;
}

std::optional<std::string> names_in(std::filesystem::path const& folder) {
    std::set<std::string> lines;
    std::error_code why;
    for (std::filesystem::directory_iterator at{folder, why}, end; !why && at != end; at.increment(why)) {
        auto const name = at->path().filename().native();
        std::error_code dangling;
        auto const as = at->is_directory(dangling) ? told_as::folder : told_as::file;
        bool const counts = is_told(name, as) && !(at->is_regular_file(dangling) && is_program(at->path()));
        if (counts) lines.insert(line_of(name));
    }
    if (why && why != std::errc::no_such_file_or_directory && why != std::errc::not_a_directory) return std::nullopt;
    std::string out;
    for (auto const& line : lines) out += line;
    return out;
}

std::size_t count_directories(kiln::unit const& u) {
    if (u.carried.empty()) return u.include_dirs.size();
    // As many as one of them is said to have been in.
    std::size_t out = 0;
    for (auto const& h : u.carried) {
        std::string_view place = h.place;
        if (place.starts_with('!') || place.starts_with('=')) place.remove_prefix(1);
        auto const directory = place.starts_with('i') ? number_before('/', place.substr(1)) : std::nullopt;
        if (directory) out = std::max(out, std::min(directory->number, most_directories - 1) + 1);
    }
    return out;
}

include_roots roots_of(kiln::unit const& u) {
    include_roots out;
    out.images_only = !u.images_of.empty();
    if (u.carried.empty()) {
        out.source_directory = u.directory;
        out.include_directories = u.include_dirs;
        return out;
    }
    for (auto const& h : u.carried) {
        auto const kind = h.place.empty() ? '\0' : h.place.front();
        auto const place = std::string_view{h.place}.substr(kind == '\0' ? 0 : 1);
        if (kind == '#') {
            if (auto const copy = number_before(' ', place))
                out.copies.emplace(copy->rest, static_cast<unsigned>(copy->number));
        } else if (kind == '=') out.names.emplace(place.substr(0, place.find_last_not_of('/') + 1), h.text);
        else if (kind != '!') out.carried.emplace(h.place, h.text);
        else if (place.empty()) out.all_known = true;
        else out.in_vain.emplace(place);
    }
    out.source_directory = fmt::format("{}s", carried_root);
    for (std::size_t i = 0; i < count_directories(u); ++i)
        out.include_directories.push_back(fmt::format("{}i{}", carried_root, i));
    return out;
}

std::vector<carried_header> carried_of(include_roots const& roots) {
    std::vector<carried_header> out;
    if (roots.all_known) out.push_back({"!", {}});
    for (auto const& place : roots.in_vain) out.push_back({"!" + place, {}});
    for (auto const& [place, copy] : roots.copies) out.push_back({fmt::format("#{} {}", copy, place), {}});
    for (auto const& [folder, names] : roots.names) out.push_back({fmt::format("={}/", folder), names});
    for (auto const& [place, text] : roots.carried) out.push_back({place, text});
    return out;
}

}  // namespace kiln::compile
