// SPDX-License-Identifier: Apache-2.0
//
// The bundles that lie beside libkiln, in lib/kiln: what packs ship and few programs need, so that it is not part of the
// library. Nobody looks for them before something was found nowhere else.
#pragma once

#include "engine/shipped_folders.hpp"
#include "store/bundle.hpp"

#include <kiln/event.hpp>

namespace kiln::engine_detail {

// Every *.kiln of the first folder that has any, as one tier. One that cannot be used costs an event.
using folder_list = std::vector<std::filesystem::path> (*)();
[[nodiscard]] std::shared_ptr<store::tier> make_shipped_files(event_log& events, folder_list folders = shipped_folders);

}  // namespace kiln::engine_detail
