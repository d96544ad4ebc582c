// SPDX-License-Identifier: Apache-2.0
// NVRTC brings no standard library. <cstdint>, <tuple> and their like are answered, where no file of that name is found, by a short
// text that takes them from the toolkit's <cuda/std/...>, or says the little there is to say. Keyed and compared like any header.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kiln::compile {

// Where the text for `name` ("cstdint") is, as a path that only read_standard_header() knows; empty when nothing answers it with the
// headers of these directories.
[[nodiscard]] std::string find_standard_header(std::string_view name, std::span<std::string const> toolkit);

// Whether C or C++ has a header of this name.
[[nodiscard]] bool is_standard_header(std::string_view name);
[[nodiscard]] bool is_standard_header_path(std::string_view path) noexcept;
// The text at such a path; nullopt for any other.
[[nodiscard]] std::optional<std::string> read_standard_header(std::string_view path);

// What would help a compile that ended with this log because a header could not be opened: "; ..." or nothing.
[[nodiscard]] std::string missing_header_advice(std::string_view log, std::span<std::string const> toolkit);

}  // namespace kiln::compile
