// SPDX-License-Identifier: Apache-2.0
#include "age.hpp"

#include "misuse.hpp"

#include <charconv>

namespace kiln::cli {

std::chrono::seconds age_in(std::string const& text) {
    constexpr std::int64_t a_day = 86'400, most = 36'500 * a_day;
    std::int64_t number = 0;
    auto const [end, why] = std::from_chars(text.data(), text.data() + text.size(), number);
    std::string_view const suffix{end, static_cast<std::size_t>(text.data() + text.size() - end)};
    std::int64_t const scale = suffix == "d"   ? a_day
                               : suffix == "h" ? 3'600
                               : suffix == "m" ? 60
                               : suffix == "s" ? 1
                                               : 0;
    if (why != std::errc{} || scale == 0 || number < 0 || number > most / scale)
        throw misuse{fmt::format("'{}' is not an age up to 36500d; write for example 30d, 12h or 45m", text)};
    return std::chrono::seconds{number * scale};
}

}  // namespace kiln::cli
