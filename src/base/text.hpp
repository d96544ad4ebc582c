// SPDX-License-Identifier: Apache-2.0
// Text on its way out: JSON and SVG are UTF-8, but file names, unit names and what compilers say need not be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln::base {

// The same text with U+FFFD in place of what is not UTF-8. A character that was cut off at the end is left out.
[[nodiscard]] std::string valid_utf8(std::string_view text);

// The same, with a '?' for each character that would turn the order of those around it about or end the line: what is shown is what is there.
[[nodiscard]] std::string readable_utf8(std::string_view text);

// As many whole characters as fit into `most` bytes.
[[nodiscard]] std::string_view first_characters(std::string_view text, std::size_t most) noexcept;

// The text as JSON has it, in quotes.
[[nodiscard]] std::string json_quoted(std::string_view text);

// dump() that cannot throw: of nlohmann's json or ordered_json, whose destructors end the program where there is no memory. All JSON
// goes this way but that which is written in other people's programs: events, and the status for C.
template <class Json>
[[nodiscard]] std::string json_text(Json const& data, int indent = -1) {
    return data.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kiln::base
