// SPDX-License-Identifier: Apache-2.0
// Capsules: docs/formats/capsule.md.
#pragma once

#include "base/check.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace kiln::cli {

// How far a capsule is believed: it decides what runs on the GPU, and in Python.
struct capsule_trust {
    std::string key;            // public key it must be signed by; empty: KILN_BUNDLE_KEY
    bool unsigned_too = false;  // asked for by name: one that nobody vouches for
};

// Unpacked once into `folder` and then found there: where its "cache" and "caches" are. errc::forbidden without trust. Empty, after
// it was said why: there is no room for it here.
[[nodiscard]] result<std::filesystem::path> unpack_for_run(std::filesystem::path const& capsule,
                                                           capsule_trust const& trust,
                                                           std::filesystem::path const& folder);

// What unpack_for_run() left in the private folder of a cache directory.
struct unpacked_capsules {
    std::uint64_t count = 0, bytes = 0;
};
[[nodiscard]] unpacked_capsules unpacked_capsules_in(std::filesystem::path const& cache);
void remove_unpacked_capsules(std::filesystem::path const& cache);

}  // namespace kiln::cli
