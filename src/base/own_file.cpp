// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

namespace kiln::base {

std::filesystem::path file_with(void const* code) {
    // Of a program, dladdr says what it was called, which is not where it is: only a library has a name of its own.
    Dl_info about{};
    ::link_map* map = nullptr;
    bool const is_known = ::dladdr1(code, &about, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
    bool const is_library = is_known && map != nullptr && map->l_name != nullptr && map->l_name[0] != '\0';
    std::error_code failed;
    if (is_library) return std::filesystem::canonical(map->l_name, failed);
    auto out = std::filesystem::canonical("/proc/self/exe", failed);
    // Where /proc is not mounted the kernel has still told how the program was started.
    auto const* const started_as = reinterpret_cast<char const*>(::getauxval(AT_EXECFN));
    if (failed && started_as != nullptr) out = std::filesystem::canonical(started_as, failed);
    return out;
}

}  // namespace kiln::base
