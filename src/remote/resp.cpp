// SPDX-License-Identifier: Apache-2.0
#include "remote/resp.hpp"

#include <algorithm>
#include <charconv>

namespace kiln::remote::resp {

namespace {

// First the length of a whole reply is found without keeping anything of it, then it is made: half a reply costs its bytes
// and nothing else.
class scanner {
public:
    scanner(base::byte_span data, limits const& most) noexcept : data_{data}, most_{most} {}

    // False: more bytes are needed, or trouble() is set.
    bool skip(unsigned depth);
    [[nodiscard]] value make();
    [[nodiscard]] std::size_t at() const noexcept { return at_; }
    [[nodiscard]] std::optional<error> const& trouble() const noexcept { return trouble_; }
    void rewind() noexcept { at_ = 0; }

private:
    [[nodiscard]] std::optional<std::string_view> line();
    [[nodiscard]] std::optional<std::int64_t> number(std::string_view digits);
    bool refuse(errc code, std::string_view why) {
        trouble_ = fail(code, "redis: {}", why);
        return false;
    }

    base::byte_span data_;
    limits const& most_;
    std::size_t at_ = 0;
    std::size_t items_ = 0;
    std::optional<error> trouble_;
};

// A line with its type in front, without its end.
std::optional<std::string_view> scanner::line() {
    auto const rest = base::as_text(data_.subspan(at_));
    auto const end = rest.substr(0, most_.line + 2).find("\r\n");
    if (end == rest.npos) {
        // Not before its end could have come: it is the same however it is cut.
        if (rest.size() >= most_.line + 2) refuse(errc::corrupt, "a line without an end");
        return std::nullopt;
    }
    at_ += end + 2;
    if (end == 0) refuse(errc::corrupt, "an empty line");
    return end == 0 ? std::nullopt : std::optional{rest.substr(0, end)};
}

std::optional<std::int64_t> scanner::number(std::string_view digits) {
    std::int64_t out = 0;
    auto const [end, why] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    if (why == std::errc{} && end == digits.data() + digits.size() && !digits.empty()) return out;
    refuse(errc::corrupt, "a number that is none");
    return std::nullopt;
}

bool scanner::skip(unsigned depth) {
    if (++items_ > most_.items + 1) return refuse(errc::out_of_memory, "too many items in one reply");
    auto const head = line();
    if (!head) return false;
    switch (head->front()) {
        case '+':
        case '-': return true;
        case ':': return number(head->substr(1)).has_value();
        case '$': {
            auto const size = number(head->substr(1));
            if (!size) return false;
            if (*size == -1) return true;
            if (*size < 0) return refuse(errc::corrupt, "a length below zero");
            auto const bytes = static_cast<std::uint64_t>(*size);
            if (bytes > most_.bulk) return refuse(errc::out_of_memory, "a value larger than allowed");
            if (at_ + bytes + 2 > most_.whole) return refuse(errc::out_of_memory, "a reply larger than allowed");
            if (data_.size() - at_ < bytes + 2) return false;
            at_ += bytes;
            if (base::as_text(data_.subspan(at_, 2)) != "\r\n") return refuse(errc::corrupt, "a value without its end");
            at_ += 2;
            return true;
        }
        case '*': {
            auto const count = number(head->substr(1));
            if (!count) return false;
            if (*count == -1) return true;
            if (*count < 0) return refuse(errc::corrupt, "a count below zero");
            if (depth == 0) return refuse(errc::out_of_memory, "too deep");
            if (static_cast<std::uint64_t>(*count) > most_.items)
                return refuse(errc::out_of_memory, "too many items in one reply");
            for (std::int64_t i = 0; i < *count; ++i) {
                if (!skip(depth - 1)) return false;
            }
            return true;
        }
        default: return refuse(errc::corrupt, "a type of reply that does not exist");
    }
}

// Only after skip() has passed all of it.
value scanner::make() {
    auto const head = *line();
    auto const rest = head.substr(1);
    value out;
    auto const keep = [&](std::string_view text) {
        auto const raw = base::as_bytes(text);
        out.data.assign(raw.begin(), raw.end());
    };
    switch (head.front()) {
        case '+':
            out.kind = kind::simple;
            keep(rest);
            break;
        case '-':
            out.kind = kind::error;
            keep(rest);
            break;
        case ':':
            out.kind = kind::integer;
            out.number = *number(rest);
            break;
        case '$': {
            auto const size = *number(rest);
            if (size < 0) break;
            out.kind = kind::bulk;
            keep(base::as_text(data_.subspan(at_, static_cast<std::size_t>(size))));
            at_ += static_cast<std::size_t>(size) + 2;
            break;
        }
        default: {
            auto const count = *number(rest);
            if (count < 0) break;
            out.kind = kind::array;
            for (std::int64_t i = 0; i < count; ++i) out.items.push_back(make());
        }
    }
    return out;
}

}  // namespace

void put_command(std::string& out, std::vector<std::string_view> const& words) {
    fmt::format_to(std::back_inserter(out), "*{}\r\n", words.size());
    for (auto const& word : words) {
        fmt::format_to(std::back_inserter(out), "${}\r\n", word.size());
        out.append(word);
        out.append("\r\n");
    }
}

result<std::optional<value>> decoder::next() {
    base::byte_span const rest = base::byte_span{buffer_}.subspan(used_);
    if (rest.empty()) {
        buffer_.clear();
        used_ = 0;
        return std::optional<value>{};
    }
    scanner s{rest, most_};
    if (!s.skip(most_.depth)) {
        if (s.trouble()) return *s.trouble();
        // What was given out already is dropped when it is most of what is held.
        if (used_ > buffer_.size() / 2) {
            buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
            used_ = 0;
        }
        return std::optional<value>{};
    }
    s.rewind();
    auto out = s.make();
    used_ += s.at();
    return std::optional{std::move(out)};
}

}  // namespace kiln::remote::resp
