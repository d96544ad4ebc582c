// SPDX-License-Identifier: Apache-2.0
// What is in a directory. std::filesystem's iterators end the program where there is no memory for the next name.
#pragma once

#include "base/check.hpp"

#include <filesystem>
#include <functional>

namespace kiln::base {

// Calls back for each name but "." and "..", in no order; a directory that is not there has none.
[[nodiscard]] result<void> for_each_name(std::filesystem::path const& directory,
                                         std::function<void(std::string_view)> const& callback);

}  // namespace kiln::base
