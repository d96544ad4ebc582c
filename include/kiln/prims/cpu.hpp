// SPDX-License-Identifier: Apache-2.0
//
// The primitives on host memory, one thread, as plainly as they can be written: for runs without a GPU and as the
// reference the device is tested against. Operators are C++ callables; kiln::cpu::plus and the others mean what their
// device counterparts mean, on floats too. Results match the device's exactly except where floating-point sums are
// rounded in another order. Outputs must have room; nothing here fails.
#pragma once

#include <kiln/prims/operators.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace KILN_PUBLIC kiln {
namespace cpu {

// ---- The built-in operators ----------------------------------------------------------------------------------------

template <class T>
[[nodiscard]] auto number_of(T value) noexcept {
    if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>) return to_float(value);
    else return value;
}
template <class T, class N>
[[nodiscard]] T from_number(N value) noexcept {
    if constexpr (std::is_same_v<T, f16>) return to_f16(static_cast<float>(value));
    else if constexpr (std::is_same_v<T, bf16>) return to_bf16(static_cast<float>(value));
    else return static_cast<T>(value);
}
// Integers wrap around, as they do on the device.
template <class T>
[[nodiscard]] auto wrapping(T value) noexcept {
    if constexpr (std::is_integral_v<T>)
        return static_cast<std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>>(value);
    else return number_of(value);
}

inline constexpr auto plus = []<class T>(T a, T b) { return from_number<T>(wrapping(a) + wrapping(b)); };
inline constexpr auto multiply = []<class T>(T a, T b) { return from_number<T>(wrapping(a) * wrapping(b)); };
inline constexpr auto less = []<class T>(T a, T b) { return number_of(a) < number_of(b); };
inline constexpr auto greater = []<class T>(T a, T b) { return number_of(b) < number_of(a); };
inline constexpr auto equal = []<class T>(T a, T b) { return number_of(a) == number_of(b); };
inline constexpr auto bit_and = []<class T>(T a, T b) { return static_cast<T>(a & b); };
inline constexpr auto bit_or = []<class T>(T a, T b) { return static_cast<T>(a | b); };
inline constexpr auto bit_xor = []<class T>(T a, T b) { return static_cast<T>(a ^ b); };

inline constexpr auto min = []<class T>(T a, T b) {
    auto const x = number_of(a);
    auto const y = number_of(b);
    if constexpr (std::is_floating_point_v<decltype(x)>) {
        if (std::isnan(x)) return b;
        if (std::isnan(y)) return a;
        if (x == y) return std::signbit(x) ? a : b;
    }
    return y < x ? b : a;
};
inline constexpr auto max = []<class T>(T a, T b) {
    auto const x = number_of(a);
    auto const y = number_of(b);
    if constexpr (std::is_floating_point_v<decltype(x)>) {
        if (std::isnan(x)) return b;
        if (std::isnan(y)) return a;
        if (x == y) return std::signbit(x) ? b : a;
    }
    return x < y ? b : a;
};

// ---- Scan and reduce -----------------------------------------------------------------------------------------------

// `out` may be `in`.
template <class T, class Op>
void exclusive_scan(std::span<T const> in, std::span<T> out, Op op, std::type_identity_t<T> init = T{}) {
    T sum = init;
    for (std::size_t i = 0; i < in.size(); ++i) {
        T const next = op(sum, in[i]);
        out[i] = sum;
        sum = next;
    }
}

template <class T, class Op>
void inclusive_scan(std::span<T const> in, std::span<T> out, Op op) {
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = i == 0 ? in[0] : op(out[i - 1], in[i]);
}

template <class T, class Op>
[[nodiscard]] T reduce(std::span<T const> in, Op op, std::type_identity_t<T> init = T{}) {
    T sum = init;
    for (T const& value : in) sum = op(sum, value);
    return sum;
}

template <class T, class Offset, class Op>
void segmented_reduce(std::span<T const> in, std::span<Offset const> offsets, std::span<T> out, Op op,
                      std::type_identity_t<T> init = T{}) {
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        auto const begin = static_cast<std::size_t>(offsets[i]);
        auto const end = std::max(begin, static_cast<std::size_t>(offsets[i + 1]));
        out[i] = reduce(in.subspan(begin, end - begin), op, init);
    }
}

// ---- Select: each returns how many it kept -------------------------------------------------------------------------

template <class T>
std::size_t select(std::span<T const> in, std::span<std::uint8_t const> mask, std::span<T> out) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
        if (mask[i] != 0) out[kept++] = in[i];
    }
    return kept;
}
template <class T, class Predicate>
std::size_t select_if(std::span<T const> in, std::span<T> out, Predicate holds) {
    std::size_t kept = 0;
    for (T const& value : in) {
        if (holds(value)) out[kept++] = value;
    }
    return kept;
}
template <class Index>
std::size_t select_indices(std::span<std::uint8_t const> mask, std::span<Index> out) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < mask.size(); ++i) {
        if (mask[i] != 0) out[kept++] = static_cast<Index>(i);
    }
    return kept;
}
template <class Index, class Predicate>
std::size_t select_indices_if(std::size_t n, std::span<Index> out, Predicate holds) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (holds(static_cast<Index>(i))) out[kept++] = static_cast<Index>(i);
    }
    return kept;
}

// ---- Bounds --------------------------------------------------------------------------------------------------------

template <class T, class Index, class Less = decltype(less)>
void lower_bound(std::span<T const> sorted, std::span<T const> queries, std::span<Index> out, Less by = {}) {
    for (std::size_t i = 0; i < queries.size(); ++i) {
        out[i] = static_cast<Index>(std::lower_bound(sorted.begin(), sorted.end(), queries[i], by) - sorted.begin());
    }
}
template <class T, class Index, class Less = decltype(less)>
void upper_bound(std::span<T const> sorted, std::span<T const> queries, std::span<Index> out, Less by = {}) {
    for (std::size_t i = 0; i < queries.size(); ++i) {
        out[i] = static_cast<Index>(std::upper_bound(sorted.begin(), sorted.end(), queries[i], by) - sorted.begin());
    }
}

// ---- Sorts and unique ----------------------------------------------------------------------------------------------

// The key's bits in the order radix sort gives them; -0 counts as +0.
template <class K>
[[nodiscard]] auto radix_bits(K key) noexcept {
    using word =
        std::conditional_t<sizeof(K) == 1, std::uint8_t,
                           std::conditional_t<sizeof(K) == 2, std::uint16_t,
                                              std::conditional_t<sizeof(K) == 4, std::uint32_t, std::uint64_t>>>;
    constexpr word top = static_cast<word>(word{1} << (sizeof(K) * 8 - 1));
    auto const bits = std::bit_cast<word>(key);
    if constexpr (std::is_integral_v<K>) {
        return std::is_signed_v<K> ? static_cast<word>(bits ^ top) : bits;
    } else {
        if (bits == top) return top;  // -0
        return (bits & top) != 0 ? static_cast<word>(~bits) : static_cast<word>(bits | top);
    }
}

// The order a stable sort puts the items in.
template <class K, class Less>
[[nodiscard]] std::vector<std::size_t> sorted_order(std::span<K const> keys, Less by) {
    std::vector<std::size_t> order(keys.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return by(keys[a], keys[b]); });
    return order;
}

enum class sort_direction { ascending, descending };

// Order of a radix sort by bits first_bit ... last_bit - 1.
template <class K>
[[nodiscard]] auto radix_less(sort_direction direction, int first_bit = 0,
                              int last_bit = static_cast<int>(sizeof(K) * 8)) {
    return [=](K a, K b) {
        auto const digits = [&](K key) {
            auto const bits = static_cast<std::uint64_t>(radix_bits(key));
            int const width = last_bit - first_bit;
            return width >= 64 ? bits : (bits >> first_bit) & ((std::uint64_t{1} << width) - 1);
        };
        return direction == sort_direction::descending ? digits(b) < digits(a) : digits(a) < digits(b);
    };
}

template <class K, class V, class Less>
void sort_pairs(std::span<K const> keys, std::span<V const> values, std::span<K> keys_out, std::span<V> values_out,
                Less by) {
    auto const order = sorted_order(keys, by);
    for (std::size_t i = 0; i < order.size(); ++i) {
        keys_out[i] = keys[order[i]];
        values_out[i] = values[order[i]];
    }
}
template <class K, class Less>
void sort_keys(std::span<K const> keys, std::span<K> keys_out, Less by) {
    std::copy(keys.begin(), keys.end(), keys_out.begin());
    std::stable_sort(keys_out.begin(), keys_out.begin() + static_cast<std::ptrdiff_t>(keys.size()), by);
}

template <class K, class V, class Equal = decltype(equal)>
std::size_t unique_by_key(std::span<K const> keys, std::span<V const> values, std::span<K> keys_out,
                          std::span<V> values_out, Equal by = {}) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i > 0 && by(keys[i - 1], keys[i])) continue;
        keys_out[kept] = keys[i];
        values_out[kept++] = values[i];
    }
    return kept;
}

// ---- Transform and gather ------------------------------------------------------------------------------------------

template <class T, class R, class Op>
void transform(std::span<T const> in, std::span<R> out, Op op) {
    std::transform(in.begin(), in.end(), out.begin(), op);
}
template <class T, class Index>
void gather(std::span<T const> in, std::span<Index const> index, std::span<T> out) {
    for (std::size_t i = 0; i < index.size(); ++i) out[i] = in[static_cast<std::size_t>(index[i])];
}

}  // namespace cpu
}  // namespace kiln
