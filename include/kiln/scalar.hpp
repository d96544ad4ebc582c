// SPDX-License-Identifier: Apache-2.0
//
// The element types every pack knows, as a value and as C++ types: what a column holds, what a kernel is specialised for,
// what a tensor is exported as. Plain values; no CUDA header.
#pragma once

#include <kiln/language.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace KILN_PUBLIC kiln {

// Bits of an IEEE half and of a bfloat16: types to store and to hand over, not to compute with on the host.
struct f16 {
    std::uint16_t bits = 0;
    bool operator==(f16 const&) const = default;
};
struct bf16 {
    std::uint16_t bits = 0;
    bool operator==(bf16 const&) const = default;
};
// Rounds to nearest even.
[[nodiscard]] f16 to_f16(float value) noexcept;
[[nodiscard]] bf16 to_bf16(float value) noexcept;
[[nodiscard]] float to_float(f16 value) noexcept;
[[nodiscard]] float to_float(bf16 value) noexcept;

enum class scalar : std::uint8_t { i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64, record };
// "i32", "f64", ...; "record" for everything else.
[[nodiscard]] std::string_view name_of(scalar kind) noexcept;

// scalar::record for every type that is none of the others, bool among them.
template <class T>
constexpr scalar scalar_of() noexcept {
    if constexpr (std::is_same_v<T, f16>) return scalar::f16;
    else if constexpr (std::is_same_v<T, bf16>) return scalar::bf16;
    else if constexpr (std::is_same_v<T, float>) return scalar::f32;
    else if constexpr (std::is_same_v<T, double>) return scalar::f64;
    else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        constexpr scalar kinds[] = {scalar::u8,  scalar::i8,  scalar::u16, scalar::i16,
                                    scalar::u32, scalar::i32, scalar::u64, scalar::i64};
        constexpr std::size_t log = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return kinds[2 * log + (std::is_signed_v<T> ? 1 : 0)];
    } else return scalar::record;
}

}  // namespace kiln
