// SPDX-License-Identifier: Apache-2.0
// What fuzz targets share: bytes as they come from a fuzzer, and a check that stays on in every build.
#pragma once

#include "base/bytes.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace kiln::fuzz {

inline base::byte_span bytes_of(std::uint8_t const* data, std::size_t size) {
    return {reinterpret_cast<std::byte const*>(data), size};
}

// Says where and ends the program: a fuzzer takes that for a crash and keeps the input.
inline void must(bool holds, std::source_location at = std::source_location::current()) {
    if (holds) return;
    std::fprintf(stderr, "%s:%u: does not hold\n", at.file_name(), static_cast<unsigned>(at.line()));
    std::abort();
}

// What a target that has several entrances goes in by: the first byte of its input.
struct chosen {
    unsigned which = 0;
    base::byte_span rest;
};
inline chosen choose(base::byte_span input, unsigned ways) {
    if (input.empty()) return {};
    return {std::to_integer<unsigned>(input.front()) % ways, input.subspan(1)};
}

}  // namespace kiln::fuzz
