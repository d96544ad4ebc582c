// SPDX-License-Identifier: Apache-2.0
#include "engine/shipped_folders.hpp"

#include "base/own_file.hpp"

namespace kiln::engine_detail {

std::vector<std::filesystem::path> shipped_folders() {
    auto const file = base::file_with(reinterpret_cast<void const*>(&shipped_folders));
    if (file.empty()) return {};
    std::vector<std::filesystem::path> out{file.parent_path() / "kiln"};
    // bin/ and libexec/kiln/.
    for (auto const& prefix : {file.parent_path().parent_path(), file.parent_path().parent_path().parent_path()}) {
        for (auto const* const libraries : {KILN_INSTALL_LIBDIR, "lib"}) out.push_back(prefix / libraries / "kiln");
    }
    return out;
}

}  // namespace kiln::engine_detail
