// SPDX-License-Identifier: Apache-2.0
#include "remote/http_answers.hpp"

#include "remote/s3.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace kiln::remote {

namespace {

constexpr std::chrono::milliseconds longest_retry{60'000};

std::optional<int> whole_number(std::string_view text) {
    int out = 0;
    auto const [end, why] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (why != std::errc{} || end != text.data() + text.size() || out < 0) return std::nullopt;
    return out;
}

std::chrono::milliseconds retry_after(http_response const& r) {
    auto const seconds = whole_number(r.header("retry-after"));
    return seconds ? std::min(longest_retry, std::chrono::milliseconds{std::int64_t{*seconds} * 1000})
                   : std::chrono::milliseconds{0};
}

// Where in a text year, day, hours, minutes and seconds are, and how long.
using places_in_time = std::array<std::pair<std::size_t, std::size_t>, 5>;

std::optional<std::int64_t> seconds_since_1970(std::string_view text, places_in_time const& places, unsigned month) {
    std::array<int, 5> parts{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto const number = whole_number(text.substr(places[i].first, places[i].second));
        if (!number) return std::nullopt;
        parts[i] = *number;
    }
    std::chrono::year_month_day const day{std::chrono::year{parts[0]}, std::chrono::month{month},
                                          std::chrono::day{static_cast<unsigned>(parts[1])}};
    if (!day.ok()) return std::nullopt;
    auto const days = std::chrono::sys_days{day}.time_since_epoch().count();
    return ((std::int64_t{days} * 24 + parts[2]) * 60 + parts[3]) * 60 + parts[4];
}

}  // namespace

bool is_good(http_response const& r) noexcept { return !r.why && r.status >= 200 && r.status < 300; }
bool is_absent(http_response const& r) noexcept { return !r.why && (r.status == 404 || r.status == 410); }

failure failure_of(http_response const& r) {
    if (r.why) return r.why;
    auto const said = fmt::format("HTTP {}", r.status);
    switch (r.status) {
        case 401:
        case 403: return {trouble::denied, said};
        case 408: return {trouble::server, said};
        case 413: return {trouble::too_large, said};
        case 507: return {trouble::full, said};
        case 429:
        case 503: return {trouble::busy, said, retry_after(r)};
        default: break;
    }
    return {r.status >= 500 ? trouble::server : trouble::protocol, said};
}

std::string_view shipping_remedy(failure const& why) noexcept {
    switch (why.what) {
        case trouble::denied: return "; give --token-file with 'user:password' or a token";
        case trouble::tls: return "; name with --ca who vouches for its certificate";
        case trouble::too_large: return "; it takes no bundles of this size (nginx: client_max_body_size)";
        default: return "";
    }
}

std::optional<std::int64_t> http_date(std::string_view text) {
    constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    constexpr std::string_view shape = "Www, 00 Mmm 0000 00:00:00 GMT";
    if (text.size() != shape.size() || text.substr(25) != " GMT") return std::nullopt;
    auto const month = months.find(text.substr(8, 3));
    if (month == months.npos || month % 3 != 0) return std::nullopt;
    return seconds_since_1970(text, {{{12, 4}, {5, 2}, {17, 2}, {20, 2}, {23, 2}}},
                              static_cast<unsigned>(month / 3 + 1));
}

std::optional<std::int64_t> iso_time(std::string_view text) {
    constexpr std::string_view shape = "0000-00-00T00:00:00";
    if (text.size() <= shape.size() || text.size() > shape.size() + 11 || text[10] != 'T' || text.back() != 'Z')
        return std::nullopt;
    auto const month = whole_number(text.substr(5, 2));
    if (!month) return std::nullopt;
    return seconds_since_1970(text, {{{0, 4}, {8, 2}, {11, 2}, {14, 2}, {17, 2}}}, static_cast<unsigned>(*month));
}

std::optional<std::chrono::seconds> age_of(http_response const& r) {
    auto const now = http_date(r.header("date"));
    auto const written = http_date(r.header("last-modified"));
    if (!now || !written) return std::nullopt;
    return std::chrono::seconds{*now - *written};
}

std::string authorization(std::string_view token) {
    bool const basic = token.find(':') != token.npos;
    return basic ? "Authorization: Basic " + base64(token) : fmt::format("Authorization: Bearer {}", token);
}

}  // namespace kiln::remote
