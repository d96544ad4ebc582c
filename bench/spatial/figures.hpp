// SPDX-License-Identifier: Apache-2.0
// How bench_spatial measures and what it prints: one figure a line, with that of the prototype where there is one.
#pragma once

#include "support/device_time.hpp"

#include <kiln/device.hpp>
#include <kiln/runtime/buffer.hpp>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace kiln::spatial_bench {

struct options {
    bool quick = false;
    std::string data, json, only;
};

template <class T>
T made(result<T> got) {
    if (!got) {
        std::fprintf(stderr, "%s\n%s\n", got.error().what(), std::string{got.error().log()}.c_str());
        std::exit(1);
    }
    return *std::move(got);
}

using bench::device_ms;

enum class better : std::uint8_t { lower, higher };
struct figure {
    std::string name;
    double value;
    std::string unit;
    double prototype;  // 0: none
    better is = better::lower;
    bool right = true;
};
void row(figure const& f);
// Writes what was printed where that was asked for; the exit status.
[[nodiscard]] int finish(options const& how);

template <class T>
std::vector<T> host_values(stream const& on, buffer<T> const& b) {
    auto const host = made(b.to_host_sync(on));
    return {host.host_span().begin(), host.host_span().end()};
}

}  // namespace kiln::spatial_bench
