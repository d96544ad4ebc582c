// SPDX-License-Identifier: Apache-2.0
// For threads and callbacks from which nothing may be thrown: what was caught becomes an error that somebody is told, and what only tells
// of something is left out where there is no memory for it.
#pragma once

#include "base/check.hpp"

namespace kiln::base {

// In a handler: the exception as an error, with "about: " before it. Needs no memory where there is none.
[[nodiscard]] error caught_error(std::string_view about = {}) noexcept;

// For events, counts and other people's callbacks: whether they come to an end decides nothing.
template <class Body>
void if_memory_allows(Body&& body) noexcept {
    try {
        body();
    } catch (std::exception const&) {
    }
}

}  // namespace kiln::base
