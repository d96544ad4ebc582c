// SPDX-License-Identifier: Apache-2.0
// The semirings on the host: what kernels/tropical/semiring.cuh says, in C++.
#pragma once

#include <kiln/tropical/product.hpp>

#include <type_traits>

namespace kiln::tropical {

template <semiring S, class T>
struct host_semiring {
    static constexpr bool is_float = std::is_floating_point_v<T>;
    static constexpr bool is_plus = S == semiring::max_plus || S == semiring::min_plus;
    static constexpr bool is_sum = S == semiring::plus_times;
    static constexpr bool is_ranged = !is_float && (is_plus || S == semiring::max_mul);
    using limits = std::numeric_limits<T>;

    static constexpr T zero() { return zero_of<T>(S); }
    static constexpr bool is_infinite(T x) {
        if constexpr (is_float || !is_plus) return false;
        else {
            constexpr T half = T{1} << (sizeof(T) * 8 - 3);
            return S == semiring::max_plus ? x < -half : x >= half;
        }
    }
    static constexpr bool beats(T x, T y) { return S == semiring::min_plus ? x < y : x > y; }

    static constexpr T wrapped_sum(T x, T y) {
        if constexpr (is_float) return x + y;
        else {
            using u = std::make_unsigned_t<T>;
            return static_cast<T>(static_cast<u>(x) + static_cast<u>(y));
        }
    }
    static constexpr T wrapped_product(T x, T y) {
        if constexpr (is_float) return x * y;
        else {
            using u = std::make_unsigned_t<T>;
            return static_cast<T>(static_cast<u>(x) * static_cast<u>(y));
        }
    }
    // Right where no integer is too large: see exact_range().
    static constexpr T times(T x, T y) {
        if constexpr (is_plus) return wrapped_sum(x, y);
        else if constexpr (S == semiring::and_or) return static_cast<T>(x != T{0} && y != T{0});
        else return wrapped_product(x, y);
    }
    static constexpr T checked_times(T x, T y) {
        if constexpr (!is_ranged) return times(x, y);
        else if constexpr (is_plus) {
            if (is_infinite(x) || is_infinite(y)) return zero();
            T out{};
            if (__builtin_add_overflow(x, y, &out)) out = x < 0 ? limits::min() : limits::max();
            return is_infinite(out) ? zero() : out;
        } else {
            T out{};
            if (__builtin_mul_overflow(x, y, &out)) out = (x < 0) != (y < 0) ? limits::min() : limits::max();
            return out;
        }
    }
    // Whether times() is exact for products of this value with others of which it says the same.
    static constexpr bool is_small(T x) {
        if constexpr (!is_ranged) return true;
        else if constexpr (is_plus) {
            constexpr T quarter = T{1} << (sizeof(T) * 8 - 4);
            return x == zero() || (x >= -quarter && x < quarter);
        } else {
            constexpr T root = sizeof(T) == 4 ? T{46340} : static_cast<T>(3037000499LL);
            return x >= -root && x <= root;
        }
    }
    static constexpr T normal(T x) {
        if constexpr (is_float) return x + T{0};  // -0 becomes +0
        else return is_infinite(x) ? zero() : x;
    }
};

}  // namespace kiln::tropical
