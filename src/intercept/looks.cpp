// SPDX-License-Identifier: Apache-2.0
#include "intercept/looks.hpp"

#include "base/file_state.hpp"
#include "compile/environment.hpp"
#include "compile/file_numbers.hpp"
#include "compile/header_stream.hpp"
#include "compile/viewpoint.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <fcntl.h>
#include <stdio_ext.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::intercept {

namespace {

using base::file_look;
using base::file_state;

constexpr std::size_t largest_header = std::size_t{64} << 20;
constexpr std::string_view known_magic = "KILNHDRS2";

struct header_text {
    base::file_descriptor file;  // at its beginning
    base::bytes text;
    file_state state{};  // before it was read
};

// Compilers read hundreds of headers: each is read at once, and a file that is as long as the file system says has no more.
result<base::bytes> whole_text(int fd, std::size_t expected) {
    base::bytes out(expected + 1);
    std::size_t size = 0;
    while (size == 0 || size != expected) {
        if (size > largest_header) return fail(errc::corrupt, "more than the {} bytes allowed", largest_header);
        auto const count = base::sys().pread(fd, out.data() + size, out.size() - size, static_cast<long>(size));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return io_error("read", errno);
        if (count == 0) break;
        size += static_cast<std::size_t>(count);
        if (size == out.size()) out.resize(out.size() * 2);
    }
    out.resize(size);
    return out;
}

// As base::read_file. nullopt: there is no such file. What is no file is not even opened: who writes into a pipe would notice.
result<std::optional<header_text>> read_header(std::string const& path) {
    if (file_look about; base::look_at(path.c_str(), about) == 0 && !S_ISREG(about.mode))
        return fail(errc::invalid_argument, "{}: not a regular file", path);
    auto fd = base::open_file(path, O_RDONLY | O_NONBLOCK);
    if (!fd) {
        if (fd.error().status() == ENOENT || fd.error().status() == ENOTDIR) return std::optional<header_text>{};
        return fd.error();
    }
    file_look about;
    if (base::look_at(fd->get(), about) != 0) return io_error(path, errno);
    if (!S_ISREG(about.mode)) return fail(errc::invalid_argument, "{}: not a regular file", path);
    auto const expected = static_cast<std::size_t>(about.state[2]);
    if (expected > largest_header) return fail(errc::corrupt, "{}: more than {} bytes", path, largest_header);
    auto text = whole_text(fd->get(), expected);
    if (!text) return std::move(text).error().within(path);
    return std::optional{header_text{*std::move(fd), *std::move(text), about.state}};
}

struct hashed_file {
    base::digest content;
    file_state state{};
};

bool is_directory(std::string const& path) {
    struct ::stat about {};
    return ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

constexpr base::digest unreadable{};

// nullopt: nothing a compiler could read as a header.
std::optional<hashed_file> hash_of(std::string const& path) {
    auto const read = read_header(path);
    if (!read && !is_directory(path)) return hashed_file{unreadable, {}};
    if (!read || !*read) return std::nullopt;
    return hashed_file{base::sha256_of(base::byte_span{(*read)->text}), (*read)->state};
}

std::uint8_t number_of(compile::file_numbers& numbers, base::digest const& content, file_state const& file) {
    constexpr std::size_t most = 250;
    auto const bytes = base::as_text(std::as_bytes(std::span{content.bytes}));
    return static_cast<std::uint8_t>(std::min(numbers.of(bytes, {file[0], file[1]}), most));
}

// The contents that more than one look has: few.
std::vector<std::uint64_t> repeated_contents(std::span<look const> looks) {
    std::vector<std::uint64_t> all, out;
    for (auto const& one : looks) {
        if (one.content) all.push_back(one.content->prefix());
    }
    std::ranges::sort(all);
    for (auto at = std::ranges::adjacent_find(all); at != all.end(); at = std::adjacent_find(at + 1, all.end()))
        out.push_back(*at);
    return out;
}

result<std::FILE*> stream_of(base::file_descriptor fd) {
    auto* const stream = ::fdopen(fd.get(), "r");
    if (stream == nullptr) return io_error("fdopen", errno);
    fd.release();
    // The compiler reads letter by letter, on one thread: a lock for each would be a twentieth of the compile.
    ::__fsetlocking(stream, FSETLOCKING_BYCALLER);
    return stream;
}

error changed(std::string const& path) { return fail(errc::io, "{}: it changed while it was compiled", path); }

// The file itself, which is still what was hashed.
result<std::FILE*> stream_of(known_file const& what) {
    KILN_TRY(auto fd, base::open_file(what.path, O_RDONLY | O_NONBLOCK));
    file_look about;
    if (base::look_at(fd.get(), about) != 0) return io_error(what.path, errno);
    if (about.state != what.state) return changed(what.path);
    return stream_of(std::move(fd));
}

// Most of what a compile did not find is in folders that are not there, and of looks in their order those in one folder come one after
// the other: whatever is below one that is not there need not be looked for.
class missing_folder {
public:
    [[nodiscard]] bool holds(std::string_view path) const { return !missing_.empty() && path.starts_with(missing_); }

    // That there is no such file.
    void learn(std::string const& path) {
        auto const folder = std::string_view{path}.substr(0, path.rfind('/') + 1);
        if (!folder.starts_with('/') || folder == there_) return;
        auto above = folder.substr(0, folder.size() - 1);
        while (!above.empty() && !is_there(std::string{above})) {
            missing_ = std::string{above} + '/';
            above = above.substr(0, above.rfind('/'));
        }
        if (!folder.starts_with(missing_) || missing_.empty()) there_ = folder;
    }

private:
    // Also where it cannot be known.
    static bool is_there(std::string const& folder) {
        struct ::stat about {};
        return ::stat(folder.c_str(), &about) == 0 || (errno != ENOENT && errno != ENOTDIR);
    }
    std::string missing_, there_;  // both end in a slash
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

bool has_word(std::string_view text, std::string_view word) {
    auto const is_part = [&](std::size_t at) {
        return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
    };
    for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
        if ((at == 0 || !is_part(at - 1)) && !is_part(at + word.size())) return true;
    }
    return false;
}

bool can_be_opened(std::string const& path) { return base::open_file(path, O_RDONLY | O_NONBLOCK).has_value(); }

}  // namespace

bool may_name_virtual_root(std::string_view text) {
    constexpr std::string_view name = "kiln";
    if (text.find("/.") == text.npos) return has_word(text, name);
    return text.find("/.kiln") != text.npos || has_word(text, name) || has_word(text, "kil") || has_word(text, "iln") ||
           (has_word(text, "ki") && has_word(text, "ln"));
}

std::string virtual_source(std::string_view file) { return fmt::format("{}s/{}", virtual_root, file); }
std::string virtual_include(std::size_t index) { return fmt::format("{}i{}", virtual_root, index); }

std::string with_real_paths(std::string text, look_roots const& roots) {
    if (roots.source_directory) replace_all(text, virtual_source(""), *roots.source_directory + "/");
    for (std::size_t i = 0; i < roots.include_directories.size(); ++i)
        replace_all(text, virtual_include(i) + "/", roots.include_directories[i] + "/");
    return text;
}

std::optional<look> parse_look(std::string_view path) {
    if (!path.starts_with(virtual_root)) return look{.path = std::string{path}, .content = {}};
    auto const rest = path.substr(virtual_root.size());
    auto const slash = rest.find('/');
    if (slash == rest.npos) return std::nullopt;
    auto const root = rest.substr(0, slash);
    look out{.path = std::string{rest.substr(slash + 1)}, .content = {}};
    if (root == "s") {
        out.from = look::root::source_directory;
        return out;
    }
    out.from = look::root::include_directory;
    auto const* const end = root.data() + root.size();
    if (!root.starts_with('i') || std::from_chars(root.data() + 1, end, out.index).ptr != end) return std::nullopt;
    return out;
}

std::optional<std::string> look_roots::locate(look const& what) const {
    switch (what.from) {
        case look::root::as_named: return what.path;
        case look::root::source_directory:
            if (!source_directory) return std::nullopt;
            return *source_directory + "/" + what.path;
        case look::root::include_directory:
            if (what.index >= include_directories.size()) return std::nullopt;
            return include_directories[what.index] + "/" + what.path;
    }
    return std::nullopt;
}

std::optional<base::digest> header_contents::of(std::string const& path) {
    base::settled_contents settled;
    return of(path, settled, belief::in_what_is_known);
}

std::optional<base::digest> header_contents::of(std::string const& path, base::settled_contents& settled, belief how) {
    std::optional<known> read_before;
    {
        std::lock_guard const lock{mutex_};
        if (auto const at = known_.find(path); at != known_.end()) read_before = at->second;
    }
    file_look about;
    if (read_before && base::look_at(path.c_str(), about) == 0 && read_before->state == about.state &&
        (how == belief::in_what_is_known || can_be_opened(path)))
        return read_before->content;
    auto const hashed = hash_of(path);
    if (!hashed) return std::nullopt;
    if (hashed->content != unreadable && settled.has(hashed->state, path.c_str())) {
        std::lock_guard const lock{mutex_};
        known_.insert_or_assign(path, known{hashed->state, hashed->content, true});
    }
    return hashed->content;
}

void header_contents::take_what_is_known() {
    std::lock_guard const lock{mutex_};
    if (list_.empty() || ::access(list_.c_str(), R_OK) != 0) return;
    auto const data = base::read_file(list_);
    list_.clear();
    if (!data || !*data) return;
    for (auto& one : decode_known_files(**data))
        known_.try_emplace(std::move(one.path), known{one.state, one.content, false});
}

void header_contents::take(std::vector<known_file> files) {
    std::lock_guard const lock{mutex_};
    for (auto& one : files) known_.insert_or_assign(std::move(one.path), known{one.state, one.content, true});
}

void header_contents::will_be_needed(std::string path) {
    std::lock_guard const lock{mutex_};
    if (auto const at = known_.find(path); at == known_.end() || at->second.here) needed_.insert(std::move(path));
}

std::vector<std::string> header_contents::to_be_read_ahead() {
    std::lock_guard const lock{mutex_};
    std::vector<std::string> out{needed_.begin(), needed_.end()};
    for (auto const& [path, one] : known_) {
        if (one.here && !needed_.contains(path)) out.push_back(path);
    }
    return out;
}

std::optional<known_file> read_settled(std::string const& path) {
    auto const hashed = hash_of(path);
    if (!hashed || hashed->content == unreadable || !base::is_content_settled(hashed->state, path.c_str()))
        return std::nullopt;
    return known_file{path, hashed->state, hashed->content};
}

base::bytes encode(std::span<known_file const> files) {
    base::byte_writer w;
    w.put_raw(base::as_bytes(known_magic));
    w.put_u32(static_cast<std::uint32_t>(files.size()));
    for (auto const& one : files) {
        w.put_text(one.path);
        for (auto const number : one.state) w.put_u64(number);
        w.put_raw(std::as_bytes(std::span{one.content.bytes}));
    }
    return std::move(w).take();
}

std::vector<known_file> decode_known_files(base::byte_span data) {
    base::byte_reader r{data};
    std::vector<known_file> out;
    if (base::as_text(r.get_raw(known_magic.size())) != known_magic) return out;
    for (auto n = r.get_count(4 + sizeof(file_state) + sizeof(base::digest::bytes)); n > 0; --n) {
        known_file one;
        one.path = r.get_text();
        for (auto& number : one.state) number = r.get_u64();
        auto const raw = base::as_text(r.get_raw(one.content.bytes.size()));
        if (raw.size() == one.content.bytes.size()) std::ranges::copy(raw, one.content.bytes.begin());
        out.push_back(std::move(one));
    }
    if (!r.done()) out.clear();
    return out;
}

std::string first_change(std::span<look const> looks, look_roots const& roots, header_contents& contents) {
    if (!looks.empty()) contents.take_what_is_known();
    base::settled_contents settled;
    missing_folder missing;
    compile::file_numbers numbers;
    auto const repeated = repeated_contents(looks);
    using belief = header_contents::belief;
    auto const how = compile::is_confined() ? belief::in_own_eyes : belief::in_what_is_known;
    for (auto const& one : looks) {
        auto const path = roots.locate(one);
        auto const now = path && !missing.holds(*path) ? contents.of(*path, settled, how) : std::nullopt;
        if (!now && path && !missing.holds(*path)) missing.learn(*path);
        if (now && now == one.content && std::ranges::binary_search(repeated, now->prefix())) {
            file_look about;
            (void)!base::look_at(path->c_str(), about);
            if (number_of(numbers, *now, about.state) != one.file)
                return fmt::format("{}: which other names are this file's changed", *path);
        }
        if (now == one.content) continue;
        if (!now) return fmt::format("{} is gone", path.value_or(one.path));
        return fmt::format("{} {}", *path, one.content ? "changed" : "appeared");
    }
    return {};
}

bool may_read(std::span<look const> looks, look_roots const& roots) {
    return std::ranges::all_of(looks, [&](look const& one) {
        auto const path = one.content ? roots.locate(one) : std::nullopt;
        return !path || can_be_opened(*path);
    });
}

look_capture::look_capture(look_roots roots, compile::texts_together own)
    : roots_{std::move(roots)}, together_{std::move(own)} {
    std::error_code nowhere;
    here_ = std::filesystem::current_path(nowhere).native();
    if (!here_.starts_with('/')) here_.clear();
    else if (here_ != "/") here_ += '/';
}

std::FILE* look_capture::refuse(error why) {
    if (!fault_) fault_ = std::move(why);
    errno = EIO;
    return nullptr;
}

std::optional<error> look_capture::objection_to(std::string const& path, std::string_view text) {
    together_.add_header(text);
    if (together_.may_name_the_time()) return fail(errc::unsupported, "it may ask for the time: {}", path);
    if (!roots_.empty() && (together_.may_name_a_file() || may_name_virtual_root(text)))
        return fail(errc::unsupported, "{}: {}", may_ask_its_name, path);
    return std::nullopt;
}

std::FILE* look_capture::open(std::string const& path) {
    base::file_descriptor file;  // read just now
    auto at = seen_.find(path);
    if (at == seen_.end()) {
        auto what = parse_look(path);
        auto const real = what ? roots_.locate(*what) : std::nullopt;
        if (!real) return refuse(fail(errc::internal, "{}: the compiler looks where it was not sent", path));
        if (compile::is_ones_own(real->c_str()))
            return refuse(fail(errc::unsupported, "each process has another file by this name: {}", *real));
        auto read = read_header(*real);
        // A directory of a header's name is no header. A pipe or a device may be one, once: not to be kept.
        if (!read && !is_directory(*real)) return refuse(std::move(read).error());
        seen one{.what = *std::move(what), .state = {}, .text = {}, .known = {}};
        if (read && *read) {
            one.state = (*read)->state;
            if (auto why = objection_to(*real, base::as_text((*read)->text))) return refuse(*std::move(why));
            one.what.content = base::sha256_of(base::byte_span{(*read)->text});
            // Relative to where: another thread may go elsewhere.
            if (settled_.has((*read)->state, real->c_str()) && real->starts_with('/')) {
                one.known = known_file{*real, (*read)->state, *one.what.content};
                file = std::move((*read)->file);
            } else one.text = std::move((*read)->text);
        }
        at = seen_.emplace(path, std::move(one)).first;
    }
    auto const& found = at->second;
    if (!found.text && !found.known) {
        errno = ENOENT;
        return nullptr;
    }
    auto stream = file          ? stream_of(std::move(file))
                  : found.known ? stream_of(*found.known)
                                : compile::stream_over(*found.text);
    if (!stream) return refuse(std::move(stream).error().within(path));
    return *stream;
}

int look_capture::stat(std::string const& path, struct ::stat* out) {
    int const status = ::stat(real_path(path).c_str(), out);
    if (status == 0 && S_ISREG(out->st_mode)) asked_about_.try_emplace(path, out->st_dev, out->st_ino);
    return status;
}

void look_capture::note_other_names() {
    std::map<std::pair<std::uint64_t, std::uint64_t>, seen const*> read;
    for (auto const& [path, one] : seen_) {
        if (one.what.content) read.try_emplace({one.state[0], one.state[1]}, &one);
    }
    for (auto const& [path, file] : asked_about_) {
        auto const same = read.find(file);
        auto what = parse_look(path);
        if (same == read.end() || seen_.contains(path) || !what) continue;
        what->content = same->second->what.content;
        seen_.emplace(path, seen{.what = *std::move(what), .state = same->second->state, .text = {}, .known = {}});
    }
}

void look_capture::note_relative_names() {
    if (here_.empty()) return;
    std::vector<std::pair<std::string, seen>> more;
    for (auto const& [path, one] : seen_) {
        if (one.what.from != look::root::as_named || !path.starts_with(here_)) continue;
        auto const begin = path.find_first_not_of('/', here_.size());
        if (begin == path.npos) continue;
        auto what = one.what;
        what.path = path.substr(begin);
        more.emplace_back(what.path, seen{.what = what, .state = one.state, .text = {}, .known = {}});
    }
    for (auto& [path, one] : more) seen_.try_emplace(path, std::move(one));
}

std::string look_capture::real_path(std::string const& path) const {
    // A virtual directory itself, without a slash after it.
    auto const what = parse_look(path.starts_with(virtual_root) && !path.ends_with('/') ? path + "/" : path);
    auto real = what ? roots_.locate(*what) : std::nullopt;
    if (!real) return path;
    while (real->size() > 1 && real->ends_with('/') && !path.ends_with('/')) real->pop_back();
    return *std::move(real);
}

std::vector<look> look_capture::looks() const {
    std::vector<look> out;
    out.reserve(seen_.size());
    compile::file_numbers numbers;
    for (auto const& [path, one] : seen_) {
        out.push_back(one.what);
        if (one.what.content) out.back().file = number_of(numbers, *one.what.content, one.state);
    }
    return out;
}

std::vector<known_file> look_capture::known() const {
    std::vector<known_file> out;
    for (auto const& [path, one] : seen_) {
        if (one.known) out.push_back(*one.known);
    }
    return out;
}

void look_capture::finish(relative_names how) {
    note_other_names();
    if (how == relative_names::made_whole) note_relative_names();
    file_look about;
    for (auto const& [path, one] : seen_) {
        if (!one.known || (base::look_at(one.known->path.c_str(), about) == 0 && about.state == one.known->state))
            continue;
        if (!fault_) fault_ = changed(one.known->path);
    }
}

}  // namespace kiln::intercept
