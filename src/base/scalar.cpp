// SPDX-License-Identifier: Apache-2.0
#include <kiln/scalar.hpp>

#include <bit>
#include <cmath>

namespace kiln {

std::string_view name_of(scalar kind) noexcept {
    static constexpr std::string_view names[] = {"i8",  "u8",  "i16",  "u16", "i32", "u32",   "i64",
                                                 "u64", "f16", "bf16", "f32", "f64", "record"};
    return names[static_cast<std::size_t>(kind)];
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
