// SPDX-License-Identifier: Apache-2.0
#include "base/load_library.hpp"

#include <dlfcn.h>
#include <exception>

namespace kiln::base {

void* load_library(char const* name, int how) noexcept {
    loader_use const use;
    return ::dlopen(name, how);
}

void keep_loaded(void const* address) noexcept {
    loader_use const use;
    ::Dl_info about{};
    if (::dladdr(address, &about) == 0 || about.dli_fname == nullptr) return;
    if (void* const library = ::dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)) ::dlclose(library);
}

void visit_libraries(library_visitor visit, void* data) {
    struct visiting {
        library_visitor visit;
        void* data;
        std::exception_ptr thrown{};
    } now{visit, data};
    {
        loader_use const use;
        ::dl_iterate_phdr(
            [](::dl_phdr_info* info, std::size_t size, void* with) noexcept {
                auto& v = *static_cast<visiting*>(with);
                try {
                    return v.visit(info, size, v.data);
                } catch (...) {
                    v.thrown = std::current_exception();
                    return 1;
                }
            },
            &now);
    }
    if (now.thrown) std::rethrow_exception(now.thrown);
}

}  // namespace kiln::base
