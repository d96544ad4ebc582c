// SPDX-License-Identifier: Apache-2.0
// An independent reference for tropical products, written from docs/tropical.md and sharing nothing with the library: wide
// integers instead of range checks, one element at a time.
#pragma once

#include <kiln/tropical/product.hpp>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace kiln::tropical_tests {

using tropical::semiring;
using tropical::shape;
__extension__ using wide_int = __int128;

class numbers {
public:
    explicit numbers(std::uint64_t seed) : state_{seed * 2654435761U + 88172645463325252U} {}
    std::uint64_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_;
    }
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }

private:
    std::uint64_t state_;
};

// mixed: both signs; ties: few values; special: NaN, infinities, zeros, ends of the range; rare: a special one in fifty.
enum class data_kind { mixed, positive, negative, ties, special, rare };
inline constexpr data_kind all_kinds[] = {data_kind::mixed, data_kind::positive, data_kind::negative,
                                          data_kind::ties,  data_kind::special,  data_kind::rare};

template <class T>
T special_value(numbers& g) {
    if constexpr (std::is_floating_point_v<T>) {
        constexpr T inf = std::numeric_limits<T>::infinity();
        T const values[] = {std::numeric_limits<T>::quiet_NaN(), inf, -inf, T{0}, -T{0}, T{1}, T{-1}, T(1e30), T(-1e30),
                            std::numeric_limits<T>::denorm_min()};
        return values[g.below(10)];
    } else {
        constexpr T most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::min();
        T const around[] = {most,
                            least,
                            static_cast<T>(least / 2),
                            static_cast<T>(most / 2),
                            static_cast<T>(least / 4),
                            static_cast<T>(most / 4),
                            static_cast<T>(least / 8),
                            static_cast<T>(most / 8),
                            0};
        T const value = around[g.below(9)];
        T const step = static_cast<T>(g.below(3) - 1);
        if (value == most || value == least) return value;
        return g.below(8) == 0 ? static_cast<T>(g.next()) : static_cast<T>(value + step);
    }
}

template <class T>
std::vector<T> make_data(std::size_t n, data_kind kind, std::uint64_t seed) {
    numbers g{seed};
    std::vector<T> out(n);
    for (auto& x : out) {
        auto const v = g.below(2001);
        T const scale = std::is_floating_point_v<T> ? T(0.125) : T(1);
        switch (kind) {
            case data_kind::mixed: x = static_cast<T>(v - 1000) * scale; break;
            case data_kind::positive: x = static_cast<T>(v) * scale; break;
            case data_kind::negative: x = static_cast<T>(-1 - v) * scale; break;
            case data_kind::ties: x = static_cast<T>(v % 3); break;
            case data_kind::special: x = special_value<T>(g); break;
            case data_kind::rare: x = g.below(50) == 0 ? special_value<T>(g) : static_cast<T>(v - 1000) * scale; break;
        }
    }
    return out;
}

template <class T>
bool reference_infinite(semiring s, wide_int x) {
    wide_int const half = wide_int{1} << (sizeof(T) * 8 - 3);
    if (s == semiring::max_plus) return x < -half;
    return s == semiring::min_plus && x >= half;
}

template <class T>
T reference_times(semiring s, T x, T y) {
    if (s == semiring::and_or) return static_cast<T>(x != T{0} && y != T{0});
    bool const plus = s == semiring::max_plus || s == semiring::min_plus;
    if constexpr (std::is_floating_point_v<T>) {
        return plus ? x + y : x * y;
    } else {
        if (reference_infinite<T>(s, x) || reference_infinite<T>(s, y)) return tropical::zero_of<T>(s);
        wide_int r = plus ? wide_int{x} + y : wide_int{x} * y;
        if (s == semiring::plus_times) return static_cast<T>(r);  // wraps
        constexpr wide_int most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::min();
        r = r > most ? most : r < least ? least : r;
        return reference_infinite<T>(s, r) ? tropical::zero_of<T>(s) : static_cast<T>(r);
    }
}

// One matrix as it lies in memory.
struct layout {
    std::int64_t ld, stride;
    bool rows_outside;
    [[nodiscard]] std::size_t at(std::int64_t w, std::int64_t i, std::int64_t j) const {
        return static_cast<std::size_t>(w * stride + (rows_outside ? i * ld + j : j * ld + i));
    }
};

template <class T>
struct reference_result {
    std::vector<T> c;
    std::vector<std::int32_t> arg;
};

// Values of A(i, k) and B(k, j) come from functions; C and winners are m x n x batch, dense, column by column.
template <class T, class A, class B>
reference_result<T> reference(semiring s, shape const& size, A a, B b, std::int32_t none = -1) {
    reference_result<T> out;
    for (std::int64_t w = 0; w < size.batch; ++w) {
        for (std::int64_t j = 0; j < size.n; ++j) {
            for (std::int64_t i = 0; i < size.m; ++i) {
                T best = tropical::zero_of<T>(s);
                std::int32_t won = none;
                for (std::int64_t k = 0; k < size.k; ++k) {
                    T const x = reference_times<T>(s, a(w, i, k), b(w, k, j));
                    if (s == semiring::plus_times) {
                        if constexpr (std::is_floating_point_v<T>) best += x;
                        else best = static_cast<T>(wide_int{best} + x);
                    } else if (s == semiring::min_plus ? x < best : x > best) {
                        best = x;
                        won = static_cast<std::int32_t>(k);
                    }
                }
                if constexpr (std::is_floating_point_v<T>) {
                    if (best == T{0}) best = T{0};
                }
                out.c.push_back(best);
                out.arg.push_back(won);
            }
        }
    }
    return out;
}

template <class T>
bool same_bits(T const& a, T const& b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(a) && std::isnan(b)) return true;
    }
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// A product with random layout, padding and batch: the host's arrays, the call, and what must come out.
template <class T>
struct random_case {
    shape size;
    tropical::input<T> a, b;
    tropical::output<T> c;
    tropical::winners arg;
    std::vector<T> host_a, host_b, host_c;
    std::vector<std::int32_t> host_arg;
    layout la, lb, lc, lx;

    random_case(semiring s, std::int64_t m, std::int64_t n, std::int64_t k, data_kind kind, std::uint64_t seed) {
        numbers g{seed};
        size = {m, n, k, g.below(4) == 0 ? 1 + g.below(3) : 1,
                g.below(2) == 0 ? tropical::order::row_major : tropical::order::column_major};
        bool const rows = size.layout == tropical::order::row_major;
        auto const pad = [&] { return g.below(2) == 0 ? 0 : g.below(6); };
        auto const place = [&](std::int64_t r, std::int64_t c_, bool turned, auto& where) {
            if (turned) std::swap(r, c_);
            bool const outside = rows != turned;  // rows of the logical matrix
            where.ld = (rows ? c_ : r) + pad();
            where.stride = where.ld * (rows ? r : c_) + pad();
            return layout{where.ld, where.stride, outside};
        };
        a.as = g.below(2) == 0 ? tropical::transposed::yes : tropical::transposed::no;
        b.as = g.below(2) == 0 ? tropical::transposed::yes : tropical::transposed::no;
        la = place(m, k, a.as == tropical::transposed::yes, a);
        lb = place(k, n, b.as == tropical::transposed::yes, b);
        lc = place(m, n, false, c);
        lx = place(m, n, false, arg);
        auto const all = [&](layout const& l) { return static_cast<std::size_t>(l.stride * size.batch); };
        bool const exact = s == semiring::plus_times && std::is_floating_point_v<T>;
        auto const chosen = exact ? data_kind::ties : kind;
        host_a = make_data<T>(all(la), chosen, seed + 1);
        host_b = make_data<T>(all(lb), chosen, seed + 2);
        host_c.assign(all(lc), T{77});
        host_arg.assign(all(lx), 12345);
        a.data = host_a.data(), b.data = host_b.data(), c.data = host_c.data(), arg.data = host_arg.data();
    }

    [[nodiscard]] reference_result<T> expected(semiring s) const {
        return reference<T>(
            s, size, [&](auto w, auto i, auto k) { return host_a[la.at(w, i, k)]; },
            [&](auto w, auto k, auto j) { return host_b[lb.at(w, k, j)]; });
    }

    // Empty, or the first difference in words. Elements between the rows must be untouched.
    [[nodiscard]] std::string difference(reference_result<T> const& want, bool with_arg) const {
        std::size_t at = 0;
        for (std::int64_t w = 0; w < size.batch; ++w) {
            for (std::int64_t j = 0; j < size.n; ++j) {
                for (std::int64_t i = 0; i < size.m; ++i, ++at) {
                    T const got = host_c[lc.at(w, i, j)];
                    auto const k = host_arg[lx.at(w, i, j)];
                    if (same_bits(got, want.c[at]) && (!with_arg || k == want.arg[at])) continue;
                    return describe() + " at (" + std::to_string(w) + ", " + std::to_string(i) + ", " +
                           std::to_string(j) + "): got " + std::to_string(got) + " from " + std::to_string(k) +
                           ", expected " + std::to_string(want.c[at]) + " from " + std::to_string(want.arg[at]);
                }
            }
        }
        std::size_t untouched = 0;
        for (auto const& x : host_c) untouched += same_bits(x, T{77}) ? 1U : 0U;
        std::size_t const gaps = host_c.size() - want.c.size();
        return untouched < gaps ? describe() + ": wrote between the rows of C" : std::string{};
    }
    [[nodiscard]] std::string describe() const {
        return std::to_string(size.m) + " x " + std::to_string(size.n) + " x " + std::to_string(size.k) + ", batch " +
               std::to_string(size.batch) + (size.layout == tropical::order::row_major ? ", rows" : ", columns") +
               (a.as == tropical::transposed::yes ? ", A turned" : "") +
               (b.as == tropical::transposed::yes ? ", B turned" : "") + ", ld " + std::to_string(a.ld) + " " +
               std::to_string(b.ld) + " " + std::to_string(c.ld);
    }
};

}  // namespace kiln::tropical_tests
