// SPDX-License-Identifier: Apache-2.0
// Requests as recipes: what a profile keeps of a primitive, and what a demand by name becomes.
#pragma once

#include "engine/pack.hpp"
#include "prims/request.hpp"

namespace kiln::prims {

[[nodiscard]] engine_detail::recipe recipe_of(request const& r);
// errc::not_found for a name of another version, errc::unsupported, errc::corrupt.
[[nodiscard]] result<request> request_of(engine_detail::recipe const& what);

// To whoever records what the program uses.
void tell_use(engine& with, request const& r, obtained const& got);
void tell_use(engine& with, request const& r, ready_unit const& got);

}  // namespace kiln::prims

// Does nothing. Whoever calls it links the pack, also from an archive.
extern "C" void kiln_has_prims();
