// SPDX-License-Identifier: Apache-2.0
// The bundles that static objects of the program registered.
#pragma once

#include "base/bytes.hpp"

#include <vector>

namespace kiln::engine_detail {

struct embedded_data {
    std::string name;
    base::byte_span data;
};

[[nodiscard]] std::vector<embedded_data> embedded_bundles();

// To the engine of the process, where there is one already.
void tell_process_engine(embedded_data const& more);

}  // namespace kiln::engine_detail
