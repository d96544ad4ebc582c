// SPDX-License-Identifier: Apache-2.0
// Device memory that both sides read and write, at the largest size, and ways to fill it on the device.
#pragma once

#include <kiln/engine.hpp>

#include <cstdint>

namespace kiln::bench {

enum class pattern {
    random,    // all bits
    index,     // i
    small,     // random, below `by`
    multiple,  // i * by
    between,   // i * by + 3
    quotient,  // i / by
};

class arena {
public:
    explicit arena(std::size_t n);

    // T: an integer of 1, 4 or 8 bytes, or double.
    template <class T>
    void fill(device_memory& to, std::size_t n, pattern how, std::uint64_t by = 1) {
        run_fill(to.get(), std::is_same_v<T, double> ? 0 : sizeof(T), how, n, by);
    }

    std::size_t most;
    stream on;
    device_memory keys, values, keys_out, values_out, mask, offsets, count, scratch;

private:
    void run_fill(void* to, std::size_t width, pattern how, std::size_t n, std::uint64_t by);
    kernel<void(void*, int, int, unsigned long long, unsigned long long)> fill_;
};

}  // namespace kiln::bench
