// SPDX-License-Identifier: Apache-2.0
// The named specialisations as requests: for the catalogue, for Kiln's own build, and for tests over all of them.
#pragma once

#include "prims/request.hpp"

#include <kiln/catalogue.hpp>

namespace kiln::prims {

struct named_request {
    kiln::spec about;
    request what;
};
[[nodiscard]] std::vector<named_request> const& named_requests();
[[nodiscard]] request const* find_request(std::string_view name);

// The skeletons that are shipped as LTO-IR: every algorithm with an operator, for six types of numbers and six shapes of structs.
[[nodiscard]] std::vector<request> template_requests();
// Radix sorts of every type of keys, alone and with values of four and eight bytes: ready, because no template would save much.
[[nodiscard]] std::vector<request> sort_requests();

}  // namespace kiln::prims
