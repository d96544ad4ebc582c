// SPDX-License-Identifier: Apache-2.0
// What fuzz targets share: bytes as they come from a fuzzer, and a check that stays on in every build.
#pragma once

#include "base/bytes.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace kiln::fuzz {

inline base::byte_span bytes_of(std::uint8_t const* data, std::size_t size) {
    return {reinterpret_cast<std::byte const*>(data), size};
}

// Says where and ends the program: a fuzzer takes that for a crash and keeps the input.
inline void must(bool holds, char const* file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (holds) return;  // std::source_location would do, but clang 14 knows none
    std::fprintf(stderr, "%s:%d: does not hold\n", file, line);
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
