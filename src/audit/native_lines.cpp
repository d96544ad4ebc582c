// SPDX-License-Identifier: Apache-2.0
#include "audit/native_lines.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>

namespace kiln::audit {

namespace {

std::string_view take_line(std::string_view& text) {
    auto const end = text.find('\n');
    auto const line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    return line;
}
std::string_view take_word(std::string_view& line) {
    auto const end = line.find('\t');
    auto const word = line.substr(0, end);
    line.remove_prefix(end == line.npos ? line.size() : end + 1);
    return word;
}

template <class Number>
std::optional<Number> number_in(std::string_view text, int base) {
    Number out{};
    auto const [end, why] = std::from_chars(text.data(), text.data() + text.size(), out, base);
    return why == std::errc{} && end != text.data() ? std::optional{out} : std::nullopt;
}

// "object\t+1a2b", as the recorder writes it.
std::optional<native_frame> frame_in(std::string_view line) {
    auto const object = take_word(line);
    auto const offset = take_word(line);
    if (object.empty() || !offset.starts_with('+')) return std::nullopt;
    auto const number = number_in<std::uint64_t>(offset.substr(1), 16);
    if (!number) return std::nullopt;
    return native_frame{std::string{object}, *number};
}

// Tabs and line ends separate what is kept.
std::string plain(std::string_view text) {
    std::string out{text};
    std::ranges::replace_if(
        out, [](char c) { return c == '\t' || c == '\n'; }, ' ');
    return out;
}

}  // namespace

native_lines native_frames_of(recording const& from) {
    native_lines out;
    std::unordered_map<std::uint32_t, bool> seen;
    for (auto const& p : from.processes) {
        for (auto const& s : p.sites) {
            if (s.stack == 0 || !seen.try_emplace(s.stack, true).second) continue;
            for (std::string_view stack = from.strings.at(s.stack); !stack.empty();)
                if (auto frame = frame_in(take_line(stack))) out.try_emplace(std::move(*frame));
        }
    }
    return out;
}

std::string to_text(native_lines const& lines) {
    std::string out;
    for (auto const& [frame, known] : lines) {
        if (known.empty()) continue;
        out += fmt::format("{}\t+{:x}\n", plain(frame.object), frame.offset);
        for (auto const& l : known) out += fmt::format("\t{}\t{}\t{}\n", plain(l.file), l.line, plain(l.function));
    }
    return out;
}

native_lines native_lines_from(std::string_view text) {
    native_lines out;
    std::vector<source_line>* to = nullptr;
    while (!text.empty()) {
        auto line = take_line(text);
        if (!line.starts_with('\t')) {
            auto frame = frame_in(line);
            to = frame ? &out[std::move(*frame)] : nullptr;
            continue;
        }
        line.remove_prefix(1);
        source_line known;
        known.file = take_word(line);
        known.line = number_in<int>(take_word(line), 10).value_or(0);
        known.function = take_word(line);
        if (to != nullptr) to->push_back(std::move(known));
    }
    return out;
}

void take_addr2line(std::string_view output, std::string const& object, native_lines& to) {
    std::vector<source_line>* lines = nullptr;
    while (!output.empty()) {
        auto const function = take_line(output);
        if (function.starts_with("0x")) {
            auto const offset = number_in<std::uint64_t>(function.substr(2), 16);
            auto const at = offset ? to.find({object, *offset}) : to.end();
            lines = at == to.end() ? nullptr : &at->second;
            continue;
        }
        auto where = take_line(output);  // "file:line", "file:line (discriminator 3)", "??:0", "??:?"
        where = where.substr(0, where.find(" ("));
        auto const colon = where.rfind(':');
        source_line known;
        if (function != "??") known.function = function;
        if (colon != where.npos && !where.starts_with("??")) {
            known.file = where.substr(0, colon);
            known.line = number_in<int>(where.substr(colon + 1), 10).value_or(0);
        }
        if (lines != nullptr && (known.line > 0 || !known.function.empty())) lines->push_back(std::move(known));
    }
}

void put_lines(native_lines const& lines, recording& to) {
    if (lines.empty()) return;
    std::unordered_map<std::uint32_t, std::uint32_t> done;
    auto const with_lines = [&](std::uint32_t stack) {
        std::string out;
        for (std::string_view left = to.strings.at(stack); !left.empty();) {
            auto const line = take_line(left);
            auto const frame = frame_in(line);
            auto const known = frame ? lines.find(*frame) : lines.end();
            if (known == lines.end() || known->second.empty()) {
                out.append(line) += '\n';
                continue;
            }
            for (auto const& l : known->second)
                out += fmt::format("{}\t{}\t{}\t{}\n", l.line > 0 ? l.file : frame->object, l.line, l.function,
                                   frame->object);
        }
        return to.strings.intern(out);
    };
    for (auto& p : to.processes) {
        for (auto& s : p.sites) {
            if (s.stack == 0) continue;
            auto const [at, fresh] = done.try_emplace(s.stack, 0u);
            if (fresh) at->second = with_lines(s.stack);
            s.stack = at->second;
        }
    }
}

}  // namespace kiln::audit
