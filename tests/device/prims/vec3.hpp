// SPDX-License-Identifier: Apache-2.0
// A struct to scan and reduce, with its sum.
#pragma once

#include "device/prims/prims_fixture.hpp"

namespace kiln {
struct vec3 {
    float x, y, z;
    std::int32_t count;
    double sum;
};
template <>
struct device_type<vec3> {
    static constexpr std::string_view name = "vec3",
                                      definition = "struct vec3 { float x, y, z; int count; double sum; };";
};
}  // namespace kiln

namespace kiln::device_tests {

inline op const add_vec3 =
    op::function("add",
                 "__device__ vec3 add(vec3 a, vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, "
                 "a.count + b.count, a.sum + b.sum}; }");
inline vec3 add_on_host(vec3 a, vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.count + b.count, a.sum + b.sum}; }

}  // namespace kiln::device_tests
