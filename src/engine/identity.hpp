// SPDX-License-Identifier: Apache-2.0
//
// When are two orders one? A request says what is known before headers are read: text, options, target, compiler. The same
// text with other include directories reads other headers and is another thing, although its request is the same. So work
// in progress, failures, demands and recordings go by identity: the request, and where its headers would be looked for. It is
// finer than the key (which is known only afterwards), never coarser; the store and what is loaded go by the key.
#pragma once

#include "engine/lookup.hpp"

namespace kiln::engine_detail {

[[nodiscard]] base::digest identity_of(subject const& of);

// The key, where it is known before compiling: no text of the unit can make the compiler look for a file.
[[nodiscard]] std::optional<base::digest> key_in_advance(subject const& of);

}  // namespace kiln::engine_detail
