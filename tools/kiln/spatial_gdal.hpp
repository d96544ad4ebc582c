// SPDX-License-Identifier: Apache-2.0
// Whatever GDAL reads, through its Arrow stream of WKB. GDAL is found when Kiln is configured and opened when a file needs it: nothing
// is linked to it.
#pragma once

#include <kiln/spatial/files.hpp>

namespace kiln::cli {

// Its version and file; errc::not_found where this build or this machine has none.
[[nodiscard]] result<std::string> gdal_in_words();
// The layer of that name, without one the first. There are no lines.
[[nodiscard]] result<spatial::rows_of_file> read_with_gdal(std::string const& file, std::string const& layer,
                                                           spatial::read_options const& how);

}  // namespace kiln::cli
