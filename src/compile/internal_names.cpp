// SPDX-License-Identifier: Apache-2.0
#include "compile/internal_names.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace kiln::compile {

namespace {

using namespace std::string_view_literals;

constexpr std::array beginnings{"_INTERNAL_"sv, "_GLOBAL__N__"sv};
constexpr std::size_t longest_file = 4096;   // of a name; more is no name
constexpr std::size_t longest_process = 10;  // digits

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_hexadecimal(char c) { return is_decimal(c) || (c >= 'a' && c <= 'f'); }

// Reads from the front of a text; what does not fit makes it bad.
class reader {
public:
    explicit reader(std::string_view text) : all_{text}, rest_{text} {}
    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] std::size_t taken() const { return all_.size() - rest_.size(); }

    std::string_view take(std::size_t count) {
        ok_ = ok_ && count <= rest_.size();
        auto const out = rest_.substr(0, ok_ ? count : 0);
        rest_.remove_prefix(out.size());
        return out;
    }
    void underscore() { ok_ = take(1) == "_"sv && ok_; }
    void checksum() {
        auto const digits = take(8);
        ok_ = ok_ && std::ranges::all_of(digits, is_hexadecimal);
    }
    [[nodiscard]] std::size_t digits_ahead() const {
        return static_cast<std::size_t>(std::ranges::find_if_not(rest_, is_decimal) - rest_.begin());
    }
    std::size_t number() {
        std::size_t out = 0;
        for (char const c : take(std::min(digits_ahead(), std::size_t{5})))
            out = out * 10 + static_cast<std::size_t>(c - '0');
        return out;
    }

private:
    std::string_view all_, rest_;
    bool ok_ = true;
};

struct internal_name {
    std::size_t length_digits;  // before it, as mangling has them
    std::string plain;
    std::size_t size;
};

// `text` begins with one of `beginnings`. Where the process ends and the next name's length begins is only told by the
// length in front of it all.
std::optional<internal_name> name_at(std::string_view before, std::string_view text, std::string_view beginning) {
    reader in{text};
    in.take(beginning.size());
    in.checksum();
    in.underscore();
    auto const length = in.number();
    in.underscore();
    if (!in.ok() || length == 0 || length > longest_file) return std::nullopt;
    auto const file = in.take(length);
    in.underscore();
    in.checksum();
    in.underscore();
    if (!in.ok()) return std::nullopt;
    auto const most = std::min(in.digits_ahead(), longest_process);
    for (std::size_t process = 1; process <= most; ++process) {
        auto const size = in.taken() + process;
        auto const said = std::to_string(size);
        if (before.ends_with(said)) return internal_name{said.size(), std::string{beginning}.append(file), size};
    }
    return std::nullopt;
}

}  // namespace

std::string without_compile_marks(std::string_view text) {
    std::string out;
    std::size_t from = 0;  // what comes before it is in `out`
    std::size_t at = 0;
    auto const next = [&] {
        auto first = text.npos;
        std::string_view which;
        for (auto const b : beginnings) {
            if (auto const found = text.find(b, at); found < first) first = found, which = b;
        }
        at = first;
        return which;
    };
    for (auto which = next(); at != text.npos; which = next()) {
        auto const name = name_at(text.substr(from, at - from), text.substr(at), which);
        if (!name) {
            at += which.size();
            continue;
        }
        out.append(text.substr(from, at - from - name->length_digits)).append(name->plain);
        from = at += name->size;
    }
    return out.append(text.substr(from));
}

}  // namespace kiln::compile
