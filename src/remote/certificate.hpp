// SPDX-License-Identifier: Apache-2.0
// What a diagnosis says of a server's certificate. Whether it is believed is libcurl's business.
#pragma once

#include <optional>
#include <string_view>

namespace kiln::remote {

// Whole days until a certificate in PEM form ends, below zero where it has. Nothing where it is none.
[[nodiscard]] std::optional<int> days_left(std::string_view pem);

}  // namespace kiln::remote
