// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"

#include <kiln/prims/operators.hpp>

#include <array>

namespace kiln {

namespace {

struct scalar_row {
    std::string_view name;
    std::size_t size;
};
constexpr std::array<scalar_row, 13> rows{{{"kiln_i8", 1},
                                           {"kiln_u8", 1},
                                           {"kiln_i16", 2},
                                           {"kiln_u16", 2},
                                           {"kiln_i32", 4},
                                           {"kiln_u32", 4},
                                           {"kiln_i64", 8},
                                           {"kiln_u64", 8},
                                           {"__half", 2},
                                           {"__nv_bfloat16", 2},
                                           {"kiln_f32", 4},
                                           {"kiln_f64", 8},
                                           {"", 0}}};

scalar_row const& row(scalar kind) { return rows[static_cast<std::size_t>(kind)]; }

}  // namespace

namespace prims {
element_type type_of(scalar kind) { return {kind, std::string{row(kind).name}, {}, row(kind).size, row(kind).size}; }
}  // namespace prims

std::string element_type::label() const {
    if (kind != scalar::record) return std::string{name_of(kind)};
    return "record" + base::sha256_of(name + "\n" + definition).hex().substr(0, 8);
}

}  // namespace kiln
