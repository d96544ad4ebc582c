// SPDX-License-Identifier: Apache-2.0
#include "compile/later_headers.hpp"

#include <sys/stat.h>

namespace kiln::compile {

namespace {

// Where the search for a header came to its end, and goes on now that it is not there.
struct search_stop {
    std::string directory;    // where it was
    std::size_t next = 0;     // of the include directories
    std::string_view path{};  // in it
};

std::optional<search_stop> search_stop_of(dependency const& d, include_roots const& roots) {
    using root = dependency::root;
    auto const& directories = roots.include_directories;
    if (d.from == root::source_directory) return search_stop{roots.source_directory, 0, d.path};
    if (d.from == root::include_directory && d.index < directories.size())
        return search_stop{directories[d.index], d.index + std::size_t{1}, d.path};
    if (d.from != root::absolute) return std::nullopt;
    // As debug builds tell it.
    for (std::size_t i = 0; i < directories.size(); ++i) {
        auto const inner = path_below(std::span{directories}.subspan(i, 1), d.path);
        if (!inner.empty()) return search_stop{directories[i], i + 1, inner};
    }
    auto const& source = roots.source_directory;
    auto const beside = source.empty() ? std::string_view{} : path_below(std::span{&source, 1}, d.path);
    return beside.empty() ? std::nullopt : std::optional{search_stop{roots.source_directory, 0, beside}};
}

}  // namespace

std::string later_headers::in_place_of(dependency const& gone) {
    using root = dependency::root;
    auto const stop = search_stop_of(gone, roots_);
    if (!stop) return {};
    auto name = stop->path;
    for (auto next = stop->next;; next = 0) {
        for (auto i = next; i < roots_.include_directories.size(); ++i) {
            dependency const later{root::include_directory, static_cast<std::uint16_t>(i), std::string{name}, {}};
            if (!is_there(roots_.include_directories[i])) continue;
            if (auto found = look(later, gone)) return *std::move(found);
        }
        // Toolkits are on machines without the sources, too.
        if (is_there(stop->directory)) {
            if (auto found = look({root::toolkit, 0, std::string{name}, {}}, gone)) return *std::move(found);
        }
        // A header that includes another by its name alone looks beside itself first, and then in all directories.
        auto const slash = name.find('/');
        if (slash == name.npos) return {};
        name = name.substr(name.rfind('/') + 1);
    }
}

bool later_headers::is_there(std::string const& directory) {
    auto const [at, is_new] = there_.try_emplace(directory);
    struct ::stat about {};
    if (is_new) at->second = ::stat(directory.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
    return at->second;
}

// nullopt: the search goes on. Empty: what is found says the same.
std::optional<std::string> later_headers::look(dependency const& later, dependency const& gone) const {
    auto const there = look_for_(later);
    if (!there.content) return there.content.error().message();
    if (there.content->empty()) return std::nullopt;
    if (*there.content == digest_of(gone)) return std::string{};
    return fmt::format("{} is gone, and {} would be found in its place", gone.path, there.real);
}

}  // namespace kiln::compile
