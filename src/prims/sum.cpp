// SPDX-License-Identifier: Apache-2.0
#include <kiln/prims/sum.hpp>

#include <fmt/format.h>

namespace kiln::prims {

op sum_of_two_floats() {
    // Knuth's two-sum of the high parts; what it rounds away goes into the low one. No multiplication, so nothing fuses.
    return op::function("sum_of_two_floats",
                        "static __device__ __forceinline__ two_floats sum_of_two_floats(two_floats a, two_floats b) {\n"
                        "    float const sum = a.high + b.high;\n"
                        "    float const part = sum - a.high;\n"
                        "    float const lost = (a.high - (sum - part)) + (b.high - part) + (a.low + b.low);\n"
                        "    float const high = sum + lost;\n"
                        "    return {high, lost - (high - sum)};\n"
                        "}\n");
}

bool can_narrow(op const& term) noexcept { return term.kind() == op::form::expression && term.state_type().size == 0; }

op in_floats(op const& term) {
    return op::function("term_in_floats",
                        fmt::format("static __device__ __forceinline__ two_floats term_in_floats(double x) {{\n"
                                    "    float const a = static_cast<float>(x);\n"
                                    "    return {{static_cast<float>(\n#line 1 \"term\"\n{}\n), 0.0f}};\n"
                                    "}}\n",
                                    term.text()));
}

}  // namespace kiln::prims
