// SPDX-License-Identifier: Apache-2.0
// What an answer over HTTP means to us, and how we say who we are.
#pragma once

#include "remote/curl.hpp"

#include <optional>

namespace kiln::remote {

[[nodiscard]] bool is_good(http_response const& r) noexcept;
[[nodiscard]] bool is_absent(http_response const& r) noexcept;
// Of an answer that is neither what was asked for nor "it is not there".
[[nodiscard]] failure failure_of(http_response const& r);
// What who ships bundles may do about it: "; give --token-file ..." or nothing.
[[nodiscard]] std::string_view shipping_remedy(failure const& why) noexcept;

// Seconds since 1970 of "Mon, 16 Nov 2026 15:24:35 GMT", the one form that servers write today.
[[nodiscard]] std::optional<std::int64_t> http_date(std::string_view text);
// The same of "2026-11-16T15:24:35.000Z", as lists of buckets have it.
[[nodiscard]] std::optional<std::int64_t> iso_time(std::string_view text);
// How old the server says that what it sent is, by its own clock. Nothing where it does not say.
[[nodiscard]] std::optional<std::chrono::seconds> age_of(http_response const& r);

// The header for a bearer token, or for "user:password".
[[nodiscard]] std::string authorization(std::string_view token);

}  // namespace kiln::remote
