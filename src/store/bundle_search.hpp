// SPDX-License-Identifier: Apache-2.0
// Opens the bundles a program was told of. One that cannot be used is left out, and an event tells why.
#pragma once

#include "store/bundle.hpp"
#include "store/event_outlet.hpp"

namespace kiln::store {

struct bundle_places {
    std::vector<std::filesystem::path> paths;  // files, or directories whose *.kiln are taken in order of name
    bool beside_program = false;               // <executable>.kiln, silently absent
    std::filesystem::path trusted_key;         // not empty: only bundles signed by it
};

struct opened_bundles {
    std::vector<std::shared_ptr<bundle_tier>> bundles;
    std::vector<refused_bundle> refused;  // those that were there and are not used
};

[[nodiscard]] opened_bundles open_bundles(bundle_places const& places, event_outlet& events);

}  // namespace kiln::store
