// SPDX-License-Identifier: Apache-2.0
//
// From a request to an image, by the first way that works:
//
//     shipped   a cubin in the library
//     kept      made here before
//     linked    the algorithm's template, shipped or made now, with the operator compiled apart: about 0.2 s
//     full      one compile, with the headers the library carries
//     plain     one compile of CUB as it is on this machine
//
// Every step down is an event. An operator that does not compile, a policy that forbids compiling and a deadline end the
// search at once: no other way would do better.
#pragma once

#include "engine/pack.hpp"
#include "prims/request.hpp"

#include <kiln/engine.hpp>

namespace kiln::prims {

using engine_detail::made_artifact;

// For any target, with or without a GPU. With `near` an image of an older architecture that runs there will do.
enum class closeness { exact, near };
[[nodiscard]] result<made_artifact> obtain(engine& with, request const& what, target t, closeness how, prim_route route,
                                           wait_options wait);

// The skeleton as LTO-IR: shipped or made now.
[[nodiscard]] result<obtained> obtain_template(engine& with, request const& what, target t, header_source from,
                                               wait_options wait);

[[nodiscard]] result<ready_unit> load_request(engine& with, request const& what, prim_options const& how);

}  // namespace kiln::prims
