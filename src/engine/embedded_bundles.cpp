// SPDX-License-Identifier: Apache-2.0
#include "engine/embedded_bundles.hpp"

#include "base/load_library.hpp"

#include <kiln/embedded.hpp>

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

}  // namespace

embedded_bundle::embedded_bundle(std::string_view name, std::span<std::byte const> data) {
    // A library that is closed stays where it is: engines have looked into its bundle, and read in it when they are asked.
    base::keep_loaded(data.data());
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
