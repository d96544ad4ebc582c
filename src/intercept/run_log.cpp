// SPDX-License-Identifier: Apache-2.0
#include "intercept/run_log.hpp"

#include "base/files.hpp"
#include "base/quiet_writes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>

namespace kiln::intercept {

namespace {

constexpr std::string_view not_kept_mark = "; not kept: ";

constexpr std::array<std::string_view, 7> kinds{"answered",  "made",     "failed",   "forwarded",
                                                "forbidden", "verified", "different"};
constexpr std::size_t fields = 14;
constexpr std::size_t most_text = 400;
constexpr std::string_view header_mark = "header\t";

std::string clean(std::string_view text) {
    std::string out{text.substr(0, most_text)};
    std::ranges::replace_if(
        out, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    return out;
}

std::vector<std::string_view> split(std::string_view line) {
    std::vector<std::string_view> out;
    for (;;) {
        auto const tab = line.find('\t');
        out.push_back(line.substr(0, tab));
        if (tab == line.npos) return out;
        line.remove_prefix(tab + 1);
    }
}

template <class Number>
Number number(std::string_view text) {
    Number out{};
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
}

// Between nothing and a day: what is summed and converted later stays a number.
template <class Duration>
Duration time_in(std::string_view text) {
    constexpr Duration longest = std::chrono::hours{24};
    return std::clamp(Duration{number<std::int64_t>(text)}, Duration{}, longest);
}

constexpr std::string_view log_of_a_door = ".log";

// Who is left over from a run that has ended makes no log.
bool has_open_door(std::string const& log) {
    return log.ends_with(log_of_a_door) &&
           ::access(log.substr(0, log.size() - log_of_a_door.size()).c_str(), F_OK) == 0;
}

// In one write: lines of many processes do not mix.
void append_text(std::string const& file, std::string_view text) {
    if (file.empty() || text.empty()) return;
    base::quiet_writes const quiet;
    int const make = has_open_door(file) ? O_CREAT : 0;
    auto const fd = base::open_file(file, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | make, 0600);
    if (fd) (void)!::write(fd->get(), text.data(), text.size());
}

}  // namespace

std::filesystem::path log_at(std::filesystem::path door) { return door += log_of_a_door; }

std::string_view name_of(happening::what kind) noexcept { return kinds[static_cast<std::size_t>(kind)]; }

happening told_of(result<store::address> const& kept, happening made) {
    if (kept) made.at = *kept;
    else made.detail += std::string{not_kept_mark} + kept.error().message();
    return made;
}

std::string_view why_made(happening const& made) noexcept {
    return std::string_view{made.detail}.substr(0, made.detail.find(not_kept_mark));
}

std::string_view why_missed(happening const& made) noexcept {
    auto const all = why_made(made);
    return all.substr(0, all.find(own_names_mark));
}

std::string_view why_own_names(happening const& made) noexcept {
    auto const all = why_made(made);
    auto const at = all.find(own_names_mark);
    return at == all.npos ? std::string_view{} : all.substr(at + own_names_mark.size());
}

std::optional<base::digest> request_of(happening const& h) noexcept {
    return h.at ? std::optional{h.at->request} : h.request;
}

std::string to_line(happening const& h) {
    auto const hex = [&](base::digest store::address::*part) {
        return h.at ? ((*h.at).*part).hex() : std::string{"-"};
    };
    auto const request = request_of(h);
    return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", name_of(h.kind), h.process, h.maker,
                       clean(h.by), clean(h.library), clean(h.program), clean(h.target), h.took.count(),
                       h.waited.count(), h.cost.count(), hex(&store::address::family), request ? request->hex() : "-",
                       hex(&store::address::key), clean(h.detail));
}

std::optional<happening> from_line(std::string_view line) {
    auto const part = split(line);
    if (part.size() != fields) return std::nullopt;
    auto const kind = std::ranges::find(kinds, part[0]);
    if (kind == kinds.end()) return std::nullopt;
    happening out;
    out.kind = static_cast<happening::what>(kind - kinds.begin());
    out.process = number<int>(part[1]);
    out.maker = number<int>(part[2]);
    out.by = part[3];
    out.library = part[4];
    out.program = part[5];
    out.target = part[6];
    out.took = time_in<std::chrono::microseconds>(part[7]);
    out.waited = time_in<std::chrono::microseconds>(part[8]);
    out.cost = time_in<std::chrono::milliseconds>(part[9]);
    auto const family = base::digest::from_hex(part[10]);
    auto const request = base::digest::from_hex(part[11]);
    auto const key = base::digest::from_hex(part[12]);
    if (family && request && key) out.at = store::address{*family, *request, *key};
    else out.request = request;
    out.detail = part[13];
    return out;
}

void append(std::string const& file, happening const& h) noexcept {
    try {
        append_text(file, to_line(h) + "\n");
    } catch (...) {  // out of memory
        return;
    }
}

void append_headers(std::string const& file, std::vector<std::string> const& paths) noexcept {
    try {
        std::string text;
        for (auto const& path : paths) {
            // The rest depends on where the program is, or cannot be a line.
            if (path.starts_with('/') && path.find('\n') == path.npos) ((text += header_mark) += path) += '\n';
        }
        append_text(file, text);
    } catch (...) {  // out of memory
        return;
    }
}

run_log parse_run_log(std::string_view text) {
    run_log out;
    while (!text.empty()) {
        auto const line = text.substr(0, text.find('\n'));
        if (line.starts_with(header_mark)) out.headers.emplace_back(line.substr(header_mark.size()));
        else if (auto one = from_line(line)) out.happenings.push_back(*std::move(one));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
    }
    return out;
}

run_log read_run_log(std::filesystem::path const& file) {
    auto const text = base::read_file(file);
    return text && *text ? parse_run_log(base::as_text(**text)) : run_log{};
}

}  // namespace kiln::intercept
