// SPDX-License-Identifier: Apache-2.0
#include "arrow_column.hpp"

#include "base/text.hpp"
#include "command.hpp"

#include <chrono>
#include <cstring>

namespace kiln::cli {

namespace {

// Metadata of a field: counts and lengths as int32, then bytes. Only whether a word is in it.
bool metadata_has(char const* metadata, std::string_view word) {
    if (metadata == nullptr) return false;
    auto const number = [&](std::size_t at) {
        std::int32_t out = 0;
        std::memcpy(&out, metadata + at, 4);
        return static_cast<std::size_t>(out);
    };
    std::size_t end = 4;
    for (std::size_t i = 0; i < 2 * number(0); ++i) end += 4 + number(end);
    return std::string_view{metadata, end}.find(word) != std::string_view::npos;
}

template <class T>
std::string number(ArrowArray const& a, std::size_t i) {
    auto const value = static_cast<T const*>(a.buffers[1])[i];
    if constexpr (sizeof(T) == 1) return std::to_string(value);  // not a letter
    else return fmt::format("{}", value);
}
template <class Offset>
std::string bytes(ArrowArray const& a, std::size_t i) {
    auto const* const offsets = static_cast<Offset const*>(a.buffers[1]);
    return {static_cast<char const*>(a.buffers[2]) + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
}

}  // namespace

std::string decoded(std::string_view text, text_encoding from) {
    if (from == text_encoding::utf8 || (from == text_encoding::untold && base::valid_utf8(text) == text))
        return std::string{text};
    std::string out;
    for (char const c : text) {
        auto const code = static_cast<unsigned char>(c);
        if (code < 0x80) out += c;
        else out += {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
    }
    return out;
}

arrow_column::arrow_column(ArrowSchema const& schema, std::int64_t at, text_encoding encoding)
    : at_{at},
      name_{decoded(schema.children[at]->name, encoding)},
      format_{schema.children[at]->format},
      encoding_{encoding},
      is_geometry_{metadata_has(schema.children[at]->metadata, "ogc.wkb") ||
                   metadata_has(schema.children[at]->metadata, "geoarrow.wkb")} {}

bool arrow_column::is_name() const noexcept {
    return format_.size() == 1 && std::strchr("uUbcCsSiIlLfg", format_[0]) != nullptr;
}

std::optional<std::string> arrow_column::value(ArrowArray const& batch, std::int64_t row) const {
    return as(format_, batch, row);
}

std::optional<std::string> arrow_column::as(std::string_view format, ArrowArray const& batch, std::int64_t row) const {
    auto const& a = *batch.children[at_];
    auto const i = static_cast<std::size_t>(row + a.offset + batch.offset);
    auto const* const valid = static_cast<std::uint8_t const*>(a.buffers[0]);
    if (valid != nullptr && (valid[i / 8] >> (i % 8) & 1U) == 0) return {};
    switch (format[0]) {
        case 'z': return bytes<std::int32_t>(a, i);
        case 'Z': return bytes<std::int64_t>(a, i);
        case 'u': return decoded(bytes<std::int32_t>(a, i), encoding_);
        case 'U': return decoded(bytes<std::int64_t>(a, i), encoding_);
        case 'b':
            return (static_cast<std::uint8_t const*>(a.buffers[1])[i / 8] >> (i % 8) & 1U) != 0 ? "true" : "false";
        case 'c': return number<std::int8_t>(a, i);
        case 'C': return number<std::uint8_t>(a, i);
        case 's': return number<std::int16_t>(a, i);
        case 'S': return number<std::uint16_t>(a, i);
        case 'i': return number<std::int32_t>(a, i);
        case 'I': return number<std::uint32_t>(a, i);
        case 'l': return number<std::int64_t>(a, i);
        case 'L': return number<std::uint64_t>(a, i);
        case 'f': return number<float>(a, i);
        case 'g': return number<double>(a, i);
        default: return {};
    }
}

std::optional<std::string> arrow_column::in_json(ArrowArray const& batch, std::int64_t row) const {
    if (!is_name() && !is_moment()) return {};
    auto const text = is_moment() ? moment(batch, row) : value(batch, row);
    if (!text) return "null";
    if (is_moment() || is_text()) return base::json_text(json(*text));
    bool const is_finite = (format_ != "f" && format_ != "g") || text->find_first_of("ni") == text->npos;
    return is_finite ? *text : "null";
}

// A date, or a date with a time, as ISO 8601 has them.
std::optional<std::string> arrow_column::moment(ArrowArray const& batch, std::int64_t row) const {
    using namespace std::chrono;
    auto const text = as(format_ == "tdD" ? "i" : "l", batch, row);
    if (!text) return {};
    auto const count = std::stoll(*text);
    auto const unit = format_.size() > 2 ? format_[2] : 's';
    std::int64_t const per_second = unit == 's' ? 1 : unit == 'm' ? 1000 : unit == 'u' ? 1000000 : 1000000000;
    auto const part = (count % per_second + per_second) % per_second;
    seconds const whole{format_ == "tdD" ? count * 86400 : (count - part) / per_second};
    auto const day = floor<days>(sys_seconds{whole});
    year_month_day const date{day};
    auto out = fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                           static_cast<unsigned>(date.day()));
    if (format_ == "tdD") return out;
    hh_mm_ss const time{sys_seconds{whole} - day};
    out += fmt::format("T{:02}:{:02}:{:02}", time.hours().count(), time.minutes().count(), time.seconds().count());
    if (part != 0) out += fmt::format(".{:0{}}", part, per_second == 1000 ? 3 : per_second == 1000000 ? 6 : 9);
    return out + (is_time_without_zone() ? "" : "Z");
}

}  // namespace kiln::cli
