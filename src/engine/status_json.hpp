// SPDX-License-Identifier: Apache-2.0
// The state of units as JSON: of this process for kiln.h, of another one for `kiln status`.
#pragma once

#include <kiln/status.hpp>

#include <nlohmann/json_fwd.hpp>

namespace kiln::engine_detail {

[[nodiscard]] nlohmann::ordered_json to_json(unit_status const& of);

// For programs that must not end where there is no memory, as they would with nlohmann's destructors.
[[nodiscard]] std::string to_json_text(warm_status const& of);

}  // namespace kiln::engine_detail
