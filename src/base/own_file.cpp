// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.hpp"

#include <dlfcn.h>
#include <link.h>

namespace kiln::base {

std::filesystem::path file_with(void const* code) {
    // Of a program, dladdr says what it was called, which is not where it is: only a library has a name of its own.
    Dl_info about{};
    ::link_map* map = nullptr;
    bool const is_known = ::dladdr1(code, &about, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
    bool const is_library = is_known && map != nullptr && map->l_name != nullptr && map->l_name[0] != '\0';
    std::error_code ignored;
    return std::filesystem::canonical(is_library ? map->l_name : "/proc/self/exe", ignored);
}

}  // namespace kiln::base
