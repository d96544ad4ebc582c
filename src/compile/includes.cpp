// SPDX-License-Identifier: Apache-2.0
#include "compile/includes.hpp"

#include "base/digest.hpp"
#include "base/files.hpp"
#include "compile/carried_headers.hpp"
#include "compile/header_memory.hpp"
#include "compile/header_stream.hpp"
#include "compile/later_headers.hpp"
#include "compile/standard_headers.hpp"
#include "compile/viewpoint.hpp"
#include "compile/worker_life.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <stdio_ext.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::compile {

namespace {

constexpr std::string_view virtual_root = "/.kiln/";
constexpr std::size_t most_of_a_header = std::size_t{64} << 20;

bool starts_with_root(std::string_view path) { return path.starts_with(virtual_root); }

std::string joined(std::string const& directory, std::string_view path) {
    return fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", path);
}

// What the capture takes for a header. A directory or a device of that name is none, for the compiler as for us; of what cannot
// be told now, reading it will tell why.
bool may_be_header(std::string const& path) {
    struct ::stat about {};
    if (::stat(path.c_str(), &about) == 0) return S_ISREG(about.st_mode);
    return errno != ENOENT && errno != ENOTDIR;
}

file_identity identity_of(struct ::stat const& about) { return {about.st_dev, about.st_ino}; }

// The toolkit's are the compiler's: whoever replaces some of them by links has another.
bool may_be_a_copy(dependency const& d) { return d.from != dependency::root::toolkit && !d.content.empty(); }

// Behind the content of a file: nothing of the first, "#2" of the next.
std::string mark_of(std::size_t number) { return number == 0 ? std::string{} : fmt::format("#{}", number + 1); }

// A text that lies in no file: who it is follows from what it says, and which copy of that it is.
header_file header_of(std::string_view text, unsigned copy = 1) {
    header_file out;
    out.there = true;
    out.about.st_dev = copy;
    out.about.st_ino = base::sha256_of(text).prefix() | 1U;
    out.about.st_mode = S_IFREG | 0444;
    out.about.st_nlink = 1;
    out.about.st_size = static_cast<::off_t>(text.size());
    auto const bytes = base::as_bytes(text);
    out.text.emplace(bytes.begin(), bytes.end());
    return out;
}

bool is_below(std::span<std::string const> folders, std::string_view path) {
    return !path_below(folders, path).empty();
}

// What the unit itself says of a path; nullopt where that is for the file system to say.
std::optional<header_file> carried_at(include_roots const& roots, std::string const& path) {
    if (roots.carried.empty() && !roots.all_known) return std::nullopt;
    bool const by_place = path.starts_with(carried_root);
    auto const at = roots.carried.find(by_place ? std::string_view{path}.substr(carried_root.size()) : path);
    if (at != roots.carried.end()) {
        auto const copy = roots.copies.find(at->first);
        return header_of(at->second, copy == roots.copies.end() ? 1 : copy->second);
    }
    if (by_place) return header_file{};
    bool const is_own = roots.all_known && !is_standard_header_path(path) && !is_below(roots.toolkit, path);
    return is_own ? std::optional{header_file{}} : std::nullopt;
}

// Any reason but that there is none is an error: it is there, and says something.
result<header_file> read_header(include_roots const& roots, std::string const& path) {
    if (auto carried = carried_at(roots, path)) return *std::move(carried);
    if (auto const ours = read_standard_header(path)) return header_of(*ours);
    if (is_worker() && is_ones_own(path.c_str()))
        return fail(
            errc::unsupported,
            "'{}' leads through /proc/self or a link into it, where a compiler in another process finds another "
            "file: include it by its own path",
            path);
    header_file out;
    auto file = base::open_file(path, O_RDONLY | O_NONBLOCK);
    if (!file && file.error().status() != ENOENT && file.error().status() != ENOTDIR) return std::move(file).error();
    if (!file) return out;
    if (base::sys().fstat(file->get(), &out.about) != 0) return io_error(path, errno);
    out.there = true;
    if (!S_ISREG(out.about.st_mode)) return out;
    auto text = base::read_all(file->get(), most_of_a_header);
    if (!text) return std::move(text).error().within(path);
    out.text = *std::move(text);
    return out;
}

error not_looked_for(dependency const& look) {
    return fail(
        errc::not_found,
        "'{}' was not looked for when the program was built, so nobody knows here what it says, or that there is "
        "none: build for this architecture, too (ARCHS of kiln_add_kernels, kiln build --arch)",
        look.path);
}

// A relative name means nothing where the working directory is not known; that is not to say that there is no such file.
std::optional<error> trouble_with(std::string const& path) {
    if (path.starts_with('/')) return std::nullopt;
    std::error_code why;
    (void)std::filesystem::current_path(why);
    return why ? std::optional{io_error(path, why.value())} : std::nullopt;
}

}  // namespace

std::string include_roots::locate(dependency const& d) const {
    switch (d.from) {
        case dependency::root::source_directory:
            return source_directory.empty() ? std::string{} : joined(source_directory, d.path);
        case dependency::root::include_directory:
            return d.index < include_directories.size() ? joined(include_directories[d.index], d.path) : std::string{};
        case dependency::root::toolkit:
            for (auto const& directory : toolkit) {
                if (auto path = joined(directory, d.path); may_be_header(path)) return path;
            }
            return find_standard_header(d.path, toolkit);
        case dependency::root::absolute: return d.path;
    }
    return {};
}

bool include_roots::is_unknown(dependency const& d) const {
    if (!all_known || d.from == dependency::root::toolkit) return false;
    if (d.from == dependency::root::absolute && is_below(toolkit, d.path)) return false;
    auto const place = place_of(d);
    if (carried.contains(place) || in_vain.contains(place)) return false;
    for (auto slash = place.find('/'); slash != place.npos; slash = place.find('/', slash + 1)) {
        if (in_vain.contains(std::string_view{place}.substr(0, slash + 1))) return false;
    }
    return !had_no_such_name(names, place);
}

std::string_view digest_of(dependency const& d) { return std::string_view{d.content}.substr(0, d.content.find('#')); }

std::string_view path_below(std::span<std::string const> folders, std::string_view path) {
    std::string_view out;
    for (std::string_view folder : folders) {
        if (folder.ends_with('/')) folder.remove_suffix(1);
        if (!path.starts_with(folder) || !path.substr(folder.size()).starts_with('/')) continue;
        auto const inner = path.substr(folder.size() + 1);
        if (out.empty() || inner.size() < out.size()) out = inner;
    }
    return out;
}

std::string virtual_source_name(std::string_view unit, include_roots const& roots) {
    std::string name{unit};
    std::ranges::replace(name, '/', '_');
    if (name.find('.') == name.npos) name += ".cu";
    if (roots.real_paths && !roots.source_directory.empty()) return joined(roots.source_directory, name);
    return fmt::format("{}s/{}", virtual_root, name);
}

std::vector<std::string> virtual_include_options(include_roots const& roots) {
    std::vector<std::string> out;
    if (roots.real_paths) {
        for (auto const& directory : roots.include_directories) out.push_back("-I" + directory);
        for (auto const& directory : roots.toolkit) out.push_back("-I" + directory);
    }
    for (std::size_t i = 0; !roots.real_paths && i < roots.include_directories.size(); ++i)
        out.push_back(fmt::format("-I{}i{}", virtual_root, i));
    // Also where there is no toolkit, and after the real directories: standard headers are answered there.
    out.push_back(fmt::format("-I{}t", virtual_root));
    return out;
}

std::string with_real_paths(std::string text, include_roots const& roots) {
    auto replace = [&](std::string const& from, std::string const& to) {
        for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
            text.replace(at, from.size(), to);
    };
    replace(fmt::format("{}s/", virtual_root),
            roots.source_directory.empty() ? "" : joined(roots.source_directory, ""));
    for (std::size_t i = 0; i < roots.include_directories.size(); ++i) {
        replace(fmt::format("{}i{}/", virtual_root, i), joined(roots.include_directories[i], ""));
    }
    if (!roots.toolkit.empty()) replace(fmt::format("{}t/", virtual_root), joined(roots.toolkit.front(), ""));
    return text;
}

dependency include_capture::classify(std::string const& path) const {
    using root = dependency::root;
    if (path.starts_with('/') && !starts_with_root(path)) return {root::absolute, 0, path, {}};
    if (!starts_with_root(path)) {
        std::error_code ignored;
        return {root::absolute, 0, std::filesystem::absolute(path, ignored).native(), {}};
    }
    // With line information a unit that carries its headers has them where it says they are.
    bool const is_carried = path.starts_with(carried_root);
    auto const rest = std::string_view{path}.substr(is_carried ? carried_root.size() : virtual_root.size());
    auto const slash = rest.find('/');
    auto const name = rest.substr(0, slash);
    auto const inner = std::string{slash == rest.npos ? std::string_view{} : rest.substr(slash + 1)};
    if (name == "s") return {root::source_directory, 0, inner, {}};
    if (name == "t") return {root::toolkit, 0, inner, {}};
    std::uint16_t index = 0;
    std::from_chars(name.data() + 1, name.data() + name.size(), index);
    return {root::include_directory, index, inner, {}};
}

std::string include_capture::locate(dependency const& d) {
    // Of several directories one answers, and for this compile it stays that one.
    if (d.from != dependency::root::toolkit) return roots_.locate(d);
    auto const [at, is_new] = toolkit_.try_emplace(d.path);
    if (is_new) at->second = roots_.locate(d);
    return at->second;
}

result<header_file const*> include_capture::read_once(std::string const& real) {
    static header_file const nothing;
    if (real.empty()) return &nothing;
    if (auto const at = files_.find(real); at != files_.end()) return &at->second;
    KILN_TRY(auto file, read_header(roots_, real));
    return &files_.emplace(real, std::move(file)).first->second;
}

void include_capture::refuse(error why) {
    if (!fault_) fault_ = std::move(why);
    errno = EIO;
}

std::FILE* include_capture::open(std::string const& path) {
    if (auto trouble = trouble_with(path)) return refuse(*std::move(trouble)), nullptr;
    auto look = classify(path);
    if (roots_.is_unknown(look)) return refuse(not_looked_for(look)), nullptr;
    auto const real = locate(look);
    auto const file = read_once(real);
    if (!file) return refuse(file.error()), nullptr;
    auto const& text = (*file)->text;
    if (!text) {
        // A source without a directory has nothing beside it, now or later: not worth remembering.
        if (!(look.from == dependency::root::source_directory && roots_.source_directory.empty()))
            seen_.emplace(path, look);
        errno = ENOENT;
        return nullptr;
    }
    auto stream = stream_over(*text);
    if (!stream) return refuse(std::move(stream).error().within(real)), nullptr;
    if (taken_over_.contains(identity_of((*file)->about)) && !names_taken_over_.contains(path)) read_again_ = true;
    remember(path, std::move(look), **file);
    return *stream;
}

void include_capture::remember(std::string const& path, dependency look, header_file const& file) {
    auto& known = seen_.emplace(path, std::move(look)).first->second;
    if (known.content.empty()) known.content = base::sha256_of(base::byte_span{*file.text}).hex();
    auto const who = identity_of(file.about);
    who_.emplace(path, who);
    read_.insert(who);
}

int include_capture::stat(std::string const& path, struct ::stat* out) {
    if (auto trouble = trouble_with(path)) return refuse(*std::move(trouble)), -1;
    auto look = classify(path);
    auto const real = locate(look);
    auto const file = read_once(real);
    // Perhaps it is not going to be read: a directory that may only be searched, the source itself.
    if (!file && ::stat(real.c_str(), out) == 0) return 0;
    if (!file) return refuse(file.error()), -1;
    if (!(*file)->there) return errno = ENOENT, -1;
    *out = (*file)->about;
    // Another name of what was read is not opened any more where `#pragma once` is in it: this is how the compiler found out.
    if ((*file)->text && read_.contains(identity_of(*out))) remember(path, std::move(look), **file);
    return 0;
}

// With line information the compiler has the toolkit's own paths. To a unit that travels they mean nothing where it is used: what was found
// there, or in none of the toolkit's directories, is told as the toolkit's.
header_looks include_capture::looks_to_tell() const {
    header_looks out;
    for (auto const& [path, look] : seen_) {
        auto const inner = look.from == dependency::root::absolute ? path_below(roots_.toolkit, look.path) : "";
        auto const name = inner.empty() ? path : fmt::format("{}t/{}", virtual_root, inner);
        auto& told = out[name];
        if (!told.content.empty()) continue;
        told = inner.empty() ? look : dependency{dependency::root::toolkit, 0, std::string{inner}, look.content};
    }
    return out;
}

std::vector<dependency> include_capture::dependencies() const {
    bool const travels = roots_.all_known && roots_.real_paths;
    auto const others = travels ? looks_to_tell() : header_looks{};
    auto const& looks = travels ? others : seen_;
    std::vector<dependency> out;
    out.reserve(looks.size());
    file_numbers told;
    for (auto const& [path, look] : looks) {
        out.push_back(look);
        auto const at = who_.find(path);
        if (at != who_.end() && may_be_a_copy(look)) out.back().content += mark_of(told.of(look.content, at->second));
    }
    return out;
}

bool include_capture::take_over(header_looks const& others) {
    std::set<std::string_view> own;
    for (auto const& [path, look] : others) {
        // Whether they were one file or two, the looks do not say.
        if (may_be_a_copy(look) && !own.insert(look.content).second) return false;
        if (roots_.is_unknown(look)) return false;
        auto const file = read_once(locate(look));
        if (!file) return false;
        auto const& text = (*file)->text;
        if (look.content != (text ? base::sha256_of(base::byte_span{*text}).hex() : std::string{})) return false;
    }
    for (auto const& [path, look] : others) {
        if (look.content.empty()) seen_.emplace(path, look);
        else remember(path, look, **read_once(locate(look)));
    }
    taken_over_ = read_;
    for (auto const& [path, look] : others) names_taken_over_.insert(path);
    return true;
}

bool include_capture::may_name_the_source(texts_together own) const {
    using pieces = texts_together::pieces;
    auto const is_of_toolkit = [&](std::string_view path) {
        return is_standard_header_path(path) || is_below(roots_.toolkit, path);
    };
    for (auto const& [path, file] : files_) {
        if (!file.text) continue;
        auto const text = base::as_text(*file.text);
        if (is_of_toolkit(path) ? library_may_name_its_source(text) : may_name_its_source(text)) return true;
        own.add(text, is_of_toolkit(path) ? pieces::underscores : pieces::of_two_letters);
    }
    return own.may_name_their_source();
}

dependency unseen_reads() { return {dependency::root::absolute, 0, "(header reads could not be seen)", "unknown"}; }

namespace {

result<std::string> content_of(include_roots const& roots, std::string const& real) {
    KILN_TRY(auto const file, read_header(roots, real));
    return file.text ? base::sha256_of(base::byte_span{*file.text}).hex() : std::string{};
}

// The question the compiler asked.
present_header look_for(dependency const& d, include_roots const& roots, header_memory::question& now) {
    if (d.from == dependency::root::toolkit) {
        auto const found = now.in_toolkit(roots.toolkit, d.path);
        if (!found) return {d.path, found.error()};
        if (!(*found)->path.empty()) return {(*found)->path, (*found)->content};
        auto ours = find_standard_header(d.path, roots.toolkit);
        auto content = ours.empty() ? result<std::string>{std::string{}} : content_of(roots, ours);
        return {std::move(ours), std::move(content)};
    }
    auto real = roots.locate(d);
    if (real.empty()) return {{}, std::string{}};
    // What a unit carries, and what is a text of ours, lies in no file that could be remembered.
    bool const in_a_file = roots.carried.empty() && !roots.all_known && !is_standard_header_path(real);
    auto content = in_a_file ? header_memory::process().content_at(real) : content_of(roots, real);
    return {std::move(real), std::move(content)};
}

bool is_sealed(dependency const& d, include_roots const& roots, absent_headers how) {
    if (d.from == dependency::root::toolkit) return how != absent_headers::are_misses;
    return how == absent_headers::are_sealed && !roots.all_known;
}

// Which file a path is, or which text that lies in none; nullopt where there is nothing.
std::optional<file_identity> who_is_at(include_roots const& roots, std::string const& path) {
    if (path.empty()) return std::nullopt;
    struct ::stat about {};
    if (auto const own = carried_at(roots, path)) about = own->about;
    else if (::stat(path.c_str(), &about) != 0) return std::nullopt;
    if (about.st_ino == 0) return std::nullopt;
    return identity_of(about);
}

// Own headers that say the same are as many files as they were. Where one of them is not here, nobody can tell.
std::string first_copy(std::span<dependency const> dependencies, include_roots const& roots) {
    std::map<std::string_view, std::vector<dependency const*>> alike;
    for (auto const& d : dependencies)
        if (may_be_a_copy(d)) alike[digest_of(d)].push_back(&d);
    for (auto const& [content, group] : alike) {
        if (group.size() < 2) continue;
        file_numbers told;
        std::string change;
        for (auto const* const d : group) {
            auto const real = roots.locate(*d);
            auto const who = who_is_at(roots, real);
            if (!who) {
                change.clear();
                break;
            }
            bool const is_same = mark_of(told.of(content, *who)) == d->content.substr(content.size());
            if (!is_same && change.empty())
                change = fmt::format("{} is a copy where it was a link, or a link where it was a copy", real);
        }
        if (!change.empty()) return change;
    }
    return {};
}

}  // namespace

std::string first_change(std::span<dependency const> dependencies, include_roots const& roots, absent_headers how) {
    if (roots.images_only) return {};
    header_memory::question now{header_memory::process()};
    later_headers later{roots, [&](dependency const& d) { return look_for(d, roots, now); }};
    for (auto const& d : dependencies) {
        bool const is_of_toolkit = d.from == dependency::root::toolkit;
        if (is_of_toolkit && how == absent_headers::are_sealed && roots.all_known) continue;
        if (roots.is_unknown(d)) return not_looked_for(d).message();
        bool const sealed = is_sealed(d, roots, how);
        auto const there = look_for(d, roots, now);
        // Who may not read a header could not have compiled with it, and is who sealing is for. Whatever else keeps it from
        // being read says nothing of what it says.
        bool const denied = !there.content && there.content.error().status() == EACCES;
        if (!there.content && !(sealed && denied)) return there.content.error().message();
        bool const absent = !there.content || there.content->empty();
        if (d.content.empty()) {
            if (!absent) return fmt::format("{} appeared", there.real);
            continue;
        }
        if (absent) {
            bool const counts = sealed && d.content != unseen_reads().content;
            if (!counts) return fmt::format("{} is gone", d.path);
            if (auto other = denied ? std::string{} : later.in_place_of(d); !other.empty()) return other;
            continue;
        }
        if (*there.content != digest_of(d)) return fmt::format("{} changed", there.real);
    }
    return first_copy(dependencies, roots);
}

std::string first_contradiction(std::span<dependency const> one, std::span<dependency const> other) {
    std::map<std::string, std::string_view> found;
    for (auto const& d : one) found.emplace(place_of(d), d.content);
    for (auto const& d : other) {
        if (d.from == dependency::root::toolkit) continue;
        auto const at = found.find(place_of(d));
        if (at != found.end() && at->second != d.content) return d.path;
    }
    return {};
}

}  // namespace kiln::compile
