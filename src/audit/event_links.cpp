// SPDX-License-Identifier: Apache-2.0
#include "audit/event_links.hpp"

#include "audit/recording_format.hpp"
#include "base/replace_name.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fcntl.h>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace kiln::audit {

namespace {

struct event_link {
    std::uint32_t pid = 0, seconds = 0, nanoseconds = 0, number = 0;
    std::string in_name;  // the event, in digits; empty: it is what the link points to
    std::filesystem::path path;
};

// "c123.45.678901234.0.event", "c123.45.678901234.0.1207000000....event"
std::optional<event_link> event_link_at(std::filesystem::path const& path) {
    auto const name = path.filename().native();
    event_link out;
    out.path = path;
    if (!name.starts_with('c') || !name.ends_with(format::link_suffix)) return {};
    auto const* at = name.data();  // before a 'c' or a dot
    auto const* const end = name.data() + name.size();
    for (auto* part : {&out.pid, &out.seconds, &out.nanoseconds, &out.number}) {
        auto const read = std::from_chars(at + 1, end, *part);
        if (read.ec != std::errc{} || read.ptr == end || *read.ptr != '.') return {};
        at = read.ptr;
    }
    auto const rest = static_cast<std::size_t>(end - at), suffix = std::string_view{format::link_suffix}.size();
    if (rest > suffix) out.in_name.assign(at + 1, rest - suffix - 1);
    return out.pid == 0 ? std::nullopt : std::optional{std::move(out)};
}

void put_number(std::string& to, std::uint32_t value) {
    for (unsigned i = 0; i < 4; ++i) to += static_cast<char>(value >> (8 * i));
}

void put_chunk(std::string& to, format::chunk type, std::uint64_t time, std::string_view contents) {
    format::chunk_header head;
    head.type = static_cast<std::uint16_t>(type);
    head.first = head.last = time;
    unsigned char bytes[format::chunk_header_bytes];
    format::write_chunk_header(head, bytes, {contents.data(), contents.size()});
    to.append(reinterpret_cast<char const*>(bytes), sizeof bytes);
    to += contents;
}

template <class Record>
bool put_event(std::string& to, std::vector<unsigned char> const& bytes, std::string_view text, std::uint64_t time) {
    if (bytes.size() != 1 + format::bytes_of<Record>()) return false;
    auto const name = format::read_record<Record>(bytes.data() + 1).name;
    std::string string;
    put_number(string, name);
    put_number(string, static_cast<std::uint32_t>(text.size()));
    put_chunk(to, format::chunk::strings, 0, string.append(text));
    put_chunk(to, Record::kind, time, {reinterpret_cast<char const*>(bytes.data() + 1), bytes.size() - 1});
    return true;
}

int digit_of(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

// As many bytes as there are pairs of digits, at most `most`.
std::vector<unsigned char> bytes_in(std::string_view digits, std::size_t most) {
    std::vector<unsigned char> out;
    for (; out.size() < most && digits.size() >= 2; digits.remove_prefix(2)) {
        int const high = digit_of(digits[0]), low = digit_of(digits[1]);
        if (high < 0 || low < 0) break;
        out.push_back(static_cast<unsigned char>(16 * high + low));
    }
    return out;
}

std::string target_of(std::filesystem::path const& link) {
    std::string out(format::most_string_bytes, '\0');
    auto const length = ::readlink(link.c_str(), out.data(), out.size());
    out.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    return out;
}

// The kind of the record and the record, each byte as two digits, and a text, in a name likewise. False: it is something else.
bool put_event_of(std::string& to, event_link const& link) {
    auto const target = link.in_name.empty() ? target_of(link.path) : link.in_name;
    auto const kind = bytes_in(target, 1);
    bool const is_compile = !kind.empty() && kind[0] == static_cast<unsigned char>(format::chunk::compile);
    if (kind.empty() || (!is_compile && kind[0] != static_cast<unsigned char>(format::chunk::child))) return false;
    auto const bytes = bytes_in(target, 1 + (is_compile ? format::bytes_of<format::compile_record>()
                                                        : format::bytes_of<format::child_record>()));
    auto text = target.substr(std::min(target.size(), 2 * bytes.size()));
    if (!link.in_name.empty()) {
        auto const decoded = bytes_in(text, text.size());
        text.assign(decoded.begin(), decoded.end());
    }
    auto const time = link.seconds * std::uint64_t{1'000'000'000} + link.nanoseconds;
    return is_compile ? put_event<format::compile_record>(to, bytes, text, time)
                      : put_event<format::child_record>(to, bytes, text, time);
}

// As the companion makes it: it gets its name when it has its head, unless that was first.
void make_file(std::filesystem::path const& file) {
    auto nameless = file;
    nameless += ".tmp-" + base::random_name();
    unsigned char head[format::file_header_bytes];
    format::write_file_header(head);
    if (base::replace_name(nameless, std::as_bytes(std::span{head}))) (void)!::link(nameless.c_str(), file.c_str());
    ::unlink(nameless.c_str());
}

// All of it, or nothing: so that it can be tried again.
bool append_whole(int fd, std::string_view events) {
    struct ::stat before {
    }, after{};
    if (::fstat(fd, &before) != 0 || !S_ISREG(before.st_mode)) return false;
    auto const written = ::write(fd, events.data(), events.size());
    if (written == static_cast<::ssize_t>(events.size())) return true;
    // Not where the process has appended something meanwhile.
    if (written > 0 && ::fstat(fd, &after) == 0 && after.st_size == before.st_size + written)
        (void)!::ftruncate(fd, before.st_size);
    return false;
}

bool append_events(std::filesystem::path const& file, std::string_view events) {
    constexpr int appending = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK;
    auto fd = base::open_file(file, appending);
    if (!fd && fd.error().status() == ENOENT) {
        make_file(file);
        fd = base::open_file(file, appending);
    }
    return fd && append_whole(fd->get(), events);
}

}  // namespace

std::size_t gather_event_links(std::filesystem::path const& folder, gathering when,
                               std::set<std::filesystem::path>& stuck) {
    std::map<std::uint32_t, std::vector<event_link>> by_pid;
    std::size_t gathered = 0;
    std::error_code ignored;
    for (auto const& entry : std::filesystem::directory_iterator{folder, ignored})
        if (auto link = event_link_at(entry.path()); link && !stuck.contains(link->path))
            by_pid[link->pid].push_back(std::move(*link));
    for (auto& [pid, links] : by_pid) {
        std::ranges::sort(links, {}, [](auto const& l) { return std::tuple{l.seconds, l.nanoseconds, l.number}; });
        std::string events;
        std::erase_if(links, [&](auto const& l) { return !put_event_of(events, l); });
        if (links.empty()) continue;
        auto const file = folder / ("c" + std::to_string(pid) + ".kilnrec");
        if (append_events(file, events)) {
            gathered += links.size();
            for (auto const& l : links)
                if (::unlink(l.path.c_str()) != 0) stuck.insert(l.path);
        } else if (when == gathering::last) ::mknod((file.native() + ".full").c_str(), S_IFREG | 0600, 0);
    }
    return gathered;
}

}  // namespace kiln::audit
