// SPDX-License-Identifier: Apache-2.0
// Entries for the store's tests: the same number always gives the same entry.
#pragma once

#include "base/files.hpp"
#include "store/tier.hpp"

#include <fmt/format.h>

#include <random>

namespace kiln::test {

inline store::digest digest_of(std::string_view what) { return base::sha256_of(what); }

inline store::address address_of(unsigned number) {
    return {.family = digest_of(fmt::format("family {}", number / 4)),
            .request = digest_of(fmt::format("request {}", number / 2)),
            .key = digest_of(fmt::format("key {}", number))};
}

// Half of it packs well and half not at all, as in a cubin.
inline base::bytes payload_of(unsigned number, std::size_t size) {
    base::bytes out(size);
    std::minstd_rand random{number + 1};
    for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i % 128 < 64 ? random() : i / 128);
    return out;
}

inline store::entry_ptr entry_of(unsigned number, std::size_t size = 2000) {
    auto out = std::make_shared<store::entry>();
    out->about = {.at = address_of(number),
                  .name = fmt::format("unit_{}", number),
                  .target = "sm_90",
                  .kind = "cubin",
                  .toolchain = "nvrtc 13.0 31b78904841e6706",
                  .producer = "kiln test",
                  .licence = "Apache-2.0"};
    out->payload = payload_of(number, size);
    return out;
}

inline store::expectation expected_of(store::entry const& e) {
    return {.target = e.about.target, .kind = e.about.kind, .toolchain = e.about.toolchain};
}

}  // namespace kiln::test
