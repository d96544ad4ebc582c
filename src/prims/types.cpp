// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"

#include <kiln/ops.hpp>

#include <array>
#include <bit>
#include <cmath>

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

f16 to_f16(float value) noexcept {
    auto const bits = std::bit_cast<std::uint32_t>(value);
    auto const sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
    auto const magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return {static_cast<std::uint16_t>(sign | 0x7fffU)};   // NaN
    if (magnitude >= 0x477ff000U) return {static_cast<std::uint16_t>(sign | 0x7c00U)};  // rounds to infinity
    if (magnitude < 0x38800000U) {
        // Subnormal half: the number of 2^-24 steps, rounded to even by the float unit.
        float const steps = std::nearbyint(std::bit_cast<float>(magnitude) * 16777216.0F);
        return {static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(steps))};
    }
    std::uint32_t const rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
    return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13))};
}

float to_float(f16 value) noexcept {
    std::uint32_t const sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
    std::uint32_t const exponent = (value.bits >> 10) & 0x1fU;
    std::uint32_t const fraction = value.bits & 0x3ffU;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13));
    if (exponent == 0) {
        float const magnitude = static_cast<float>(fraction) / 16777216.0F;
        return sign != 0 ? -magnitude : magnitude;
    }
    return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (fraction << 13));
}

bf16 to_bf16(float value) noexcept {
    auto const bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
    return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

float to_float(bf16 value) noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

}  // namespace kiln
