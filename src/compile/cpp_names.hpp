// SPDX-License-Identifier: Apache-2.0
// From the names in an image to those in the source: "_ZN1a5scaleIfEEvPT_" is a::scale<float>.
#pragma once

#include <string>
#include <string_view>

namespace kiln::compile {

// Without return type and parameters. What is not mangled, or cannot be read, comes back as it is.
[[nodiscard]] std::string cpp_name(std::string const& lowered);

// Whether somebody who writes `asked` means `lowered`: as in the image, as in the source, and with "&" before it.
[[nodiscard]] bool is_name_of(std::string_view asked, std::string const& lowered);

}  // namespace kiln::compile
