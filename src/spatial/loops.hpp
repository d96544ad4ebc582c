// SPDX-License-Identifier: Apache-2.0
// Loops whose turns do not depend on each other, as those of a kernel. A build with -DKILN_SCRAMBLED_LOOPS takes them in another order:
// what comes out must be the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace kiln::spatial {

#ifdef KILN_SCRAMBLED_LOOPS
inline constexpr bool scrambled_loops = true;
#else
inline constexpr bool scrambled_loops = false;
#endif

template <class Turn>
void in_any_order(std::size_t n, Turn turn) {
    if constexpr (scrambled_loops) {
        std::size_t stride = n / 2 + n / 9 + 1;
        while (std::gcd(stride, n) > 1) ++stride;
        for (std::size_t k = 0, i = n / 3; k < n; ++k, i = (i + stride) % n) turn(i);
    } else {
        for (std::size_t i = 0; i < n; ++i) turn(i);
    }
}

// Results in the order of their turns, whatever that was.
template <class T, class Before>
void settle(std::vector<T>& results, Before before) {
    if constexpr (scrambled_loops) std::stable_sort(results.begin(), results.end(), before);
}

}  // namespace kiln::spatial
