// SPDX-License-Identifier: Apache-2.0
#include "base/load_library.hpp"

#include <dlfcn.h>

namespace kiln::base {

void* load_library(char const* name, int how) noexcept {
    loader_use const use;
    return ::dlopen(name, how);
}

void visit_libraries(int (*visit)(::dl_phdr_info* info, std::size_t size, void* data), void* data) noexcept {
    loader_use const use;
    ::dl_iterate_phdr(visit, data);
}

}  // namespace kiln::base
