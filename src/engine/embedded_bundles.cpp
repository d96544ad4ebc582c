// SPDX-License-Identifier: Apache-2.0
#include "engine/embedded_bundles.hpp"

#include <kiln/embedded.hpp>

#include <dlfcn.h>

#include <mutex>

namespace kiln {

namespace {

// Made at the first registration, before main in any order, and never destroyed.
struct registry {
    std::mutex mutex;
    std::vector<engine_detail::embedded_data> bundles;
};
registry& all() {
    static registry& r = *new registry;
    return r;
}

// A library that is closed stays where it is: engines have looked into its bundle, and read in it when they are asked.
void keep_loaded(std::span<std::byte const> data) {
    ::Dl_info about{};
    if (::dladdr(data.data(), &about) == 0 || about.dli_fname == nullptr) return;
    if (void* const library = ::dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)) ::dlclose(library);
}

}  // namespace

embedded_bundle::embedded_bundle(std::string_view name, std::span<std::byte const> data) {
    keep_loaded(data);
    {
        std::lock_guard const lock{all().mutex};
        all().bundles.push_back({std::string{name}, data});
    }
    // A profile may have made the process's engine before the program's own static objects.
    engine_detail::tell_process_engine({std::string{name}, data});
}

std::vector<engine_detail::embedded_data> engine_detail::embedded_bundles() {
    std::lock_guard const lock{all().mutex};
    return all().bundles;
}

}  // namespace kiln
