// SPDX-License-Identifier: Apache-2.0
// A struct no primitive was tuned for, and operators on it.
#pragma once

#include <kiln/prims/operators.hpp>

#include <cstdint>

namespace kiln::bench {

struct tally {
    double total;
    std::int32_t count;
    std::int32_t most;
};

// `more` makes it another operator.
inline op tally_sum(int more = 0) {
    return op{"tally{a.total + b.total, a.count + b.count + " + std::to_string(more) +
              ", a.most > b.most ? a.most : b.most}"};
}
inline op fewer(int more = 0) { return op{"a.count < b.count - " + std::to_string(more)}; }
inline op as_many(int more = 0) { return op{"a.count == b.count - " + std::to_string(more)}; }
inline op even(int more = 0) { return op{"(a.count + " + std::to_string(more) + ") % 2 == 0"}; }

}  // namespace kiln::bench

template <>
struct kiln::device_type<kiln::bench::tally> {
    static constexpr std::string_view name = "tally";
    static constexpr std::string_view definition = "struct tally { double total; int count; int most; };";
};
