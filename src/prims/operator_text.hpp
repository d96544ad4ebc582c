// SPDX-License-Identifier: Apache-2.0
// An operator as device text: the function kiln_operator that the primitives call.
#pragma once

#include "prims/request.hpp"

namespace kiln::prims {

enum class linkage { external, local };

// Lines are counted from 1 in the user's own text, which is called "operator" in the compiler's messages.
[[nodiscard]] std::string operator_text(request const& r, linkage how);

// The words of a built-in operator on a type; nullopt for one that does not exist there.
[[nodiscard]] std::optional<std::string> builtin_expression(std::string_view name, element_type const& type);

// Everything about an operator but the value it captured.
[[nodiscard]] base::digest operator_digest(op const& by);

// Does the text need CUDA's half-precision headers?
[[nodiscard]] bool needs_half(request const& r);

// A user's text in an error message: the first line or so.
[[nodiscard]] std::string excerpt(op const& by);

}  // namespace kiln::prims
