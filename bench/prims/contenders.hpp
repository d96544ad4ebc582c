// SPDX-License-Identifier: Apache-2.0
// What is compared: a primitive of ours, the same by CUB, and the data both get.
#pragma once

#include "prims/arena.hpp"

#include <functional>
#include <string>
#include <vector>

namespace kiln::bench {

struct contender {
    std::string name;
    int cub;  // cub_algorithm
    std::function<void(arena&, std::size_t)> prepare;
    std::function<void(arena&, std::size_t)> run;  // ours
    void const* (*second)(arena&) = [](arena& a) -> void const* { return a.values.get(); };
    std::size_t segment = 0;
};

// The named specialisations and three with operators CUB does not know.
[[nodiscard]] std::vector<contender> specs();
// Short and long segments, sorted queries.
[[nodiscard]] std::vector<contender> special_shapes();

// Radix sorts of every type of keys, alone and with values, and one struct per algorithm that takes one. Few of them ship:
// making one compiles, and several may be made at once.
struct planned {
    std::string name;
    std::function<contender()> make;
};
[[nodiscard]] std::vector<planned> every_type();

}  // namespace kiln::bench
