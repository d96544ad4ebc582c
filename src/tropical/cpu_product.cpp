// SPDX-License-Identifier: Apache-2.0
//
// Products on the host. Panels of A and B are copied so that the inner loops run over neighbours and have fixed lengths,
// which is all a compiler needs to use vector registers. Steps go in order of k with a strict comparison, so ties and
// winners come out as on the device.
#include "tropical/cpu_semiring.hpp"
#include "tropical/problem.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::tropical {

namespace {

constexpr int panel_m = 64;  // rows of A packed at once

template <semiring S, class T, bool WithArg>
class host_product {
    using ring = host_semiring<S, T>;
    using index = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;  // as wide as T: lanes match
    static constexpr int tile_m = (WithArg ? 32 : 64) / static_cast<int>(sizeof(T));
    static constexpr int tile_n = 4;
    static_assert(panel_m % tile_m == 0);

public:
    explicit host_product(problem const& p) : p_{p} {
        a_.resize(static_cast<std::size_t>(p.k) * panel_m);
        b_.resize(static_cast<std::size_t>(p.k) * tile_n);
    }

    void run() {
        for (std::int64_t w = 0; w < p_.batch; ++w) {
            select(w);
            for (std::int64_t m = 0; m < p_.m; m += panel_m) {
                pack_a(m);
                for (std::int64_t n = 0; n < p_.n; n += tile_n) {
                    pack_b(n);
                    auto const rows = std::min<std::int64_t>(panel_m, p_.m - m);
                    for (std::int64_t i = 0; i < rows; i += tile_m) {
                        if (a_small_ && b_small_) tile<false>(m, i, n);
                        else tile<true>(m, i, n);
                    }
                }
            }
        }
    }

private:
    template <class U>
    static U* member(void const* base, std::int64_t stride, std::int64_t w, bool by_pointer) {
        auto* const first = static_cast<U*>(const_cast<void*>(base));
        if (by_pointer) return static_cast<U* const*>(base)[w];
        return first == nullptr ? nullptr : first + w * stride;
    }
    void select(std::int64_t w) {
        bool const by_pointer = (p_.flags & flag::by_pointer) != 0;
        from_a_ = member<T const>(p_.a, p_.stride_a, w, by_pointer && p_.a != nullptr);
        from_b_ = member<T const>(p_.b, p_.stride_b, w, by_pointer && p_.b != nullptr);
        c_ = member<T>(p_.c, p_.stride_c, w, by_pointer);
        if constexpr (WithArg) {
            if ((p_.flags & flag::arg_is_64) != 0) arg64_ = member<std::int64_t>(p_.arg, p_.stride_arg, w, by_pointer);
            else arg32_ = member<std::int32_t>(p_.arg, p_.stride_arg, w, by_pointer);
        }
    }

    // [tile of rows][k][row in the tile]; rows beyond the edge are zeros of the semiring.
    void pack_a(std::int64_t m0) {
        bool const along_k = (p_.flags & flag::a_along_k) != 0;
        a_small_ = true;
        for (int t = 0; t < panel_m / tile_m; ++t) {
            T* to = a_.data() + static_cast<std::size_t>(t) * static_cast<std::size_t>(p_.k) * tile_m;
            for (std::int64_t k = 0; k < p_.k; ++k) {
                for (int i = 0; i < tile_m; ++i) {
                    auto const m = m0 + t * tile_m + i;
                    T const x = m < p_.m ? from_a_[along_k ? m * p_.lda + k : k * p_.lda + m] : ring::zero();
                    a_small_ &= ring::is_small(x);
                    *to++ = x;
                }
            }
        }
    }
    void pack_b(std::int64_t n0) {
        bool const along_k = (p_.flags & flag::b_along_k) != 0;
        b_small_ = true;
        T* to = b_.data();
        for (std::int64_t k = 0; k < p_.k; ++k) {
            for (int j = 0; j < tile_n; ++j) {
                auto const n = n0 + j;
                T const x = n < p_.n ? from_b_[along_k ? n * p_.ldb + k : k * p_.ldb + n] : ring::zero();
                b_small_ &= ring::is_small(x);
                *to++ = x;
            }
        }
    }

    template <bool Checked>
    void tile(std::int64_t m0, std::int64_t i0, std::int64_t n0) {
        T acc[tile_n][tile_m];
        index won[WithArg ? tile_n : 1][WithArg ? tile_m : 1];
        for (auto& column : acc) std::fill(std::begin(column), std::end(column), ring::zero());
        if constexpr (WithArg) {
            for (auto& column : won) std::fill(std::begin(column), std::end(column), index{-1});
        }
        T const* a = a_.data() + static_cast<std::size_t>(i0) * static_cast<std::size_t>(p_.k);
        T const* b = b_.data();
        for (index k = 0; k < static_cast<index>(p_.k); ++k, a += tile_m, b += tile_n) {
            for (int j = 0; j < tile_n; ++j) {
                T const y = b[j];
                for (int i = 0; i < tile_m; ++i) {
                    if constexpr (ring::is_sum) {
                        acc[j][i] = ring::wrapped_sum(acc[j][i], ring::wrapped_product(a[i], y));
                    } else {
                        T const x = Checked ? ring::checked_times(a[i], y) : ring::times(a[i], y);
                        bool const better = ring::beats(x, acc[j][i]);
                        if constexpr (WithArg) won[j][i] = better ? k : won[j][i];
                        acc[j][i] = better ? x : acc[j][i];
                    }
                }
            }
        }
        for (int j = 0; j < tile_n && n0 + j < p_.n; ++j) {
            for (int i = 0; i < tile_m && m0 + i0 + i < p_.m; ++i)
                put(m0 + i0 + i, n0 + j, acc[j][i], WithArg ? won[WithArg ? j : 0][WithArg ? i : 0] : index{-1});
        }
    }

    void put(std::int64_t m, std::int64_t n, T value, index won) {
        T& c = c_[n * p_.ldc + m];
        if (won < 0 || ring::is_infinite(value)) won = p_.no_path;
        if ((p_.flags & flag::accumulate) != 0) {
            T const old = ring::normal(c);
            if constexpr (ring::is_sum) value = ring::wrapped_sum(old, value);
            else if (!ring::beats(value, old) && old == old) {
                value = old;
                won = -1;
            }
        }
        c = ring::normal(value);
        if constexpr (WithArg) {
            auto const at = n * p_.ldarg + m;
            if (arg64_ != nullptr) arg64_[at] = won;
            else arg32_[at] = static_cast<std::int32_t>(won);
        }
    }

    problem p_;
    std::vector<T> a_, b_;
    bool a_small_ = true, b_small_ = true;
    T const* from_a_ = nullptr;
    T const* from_b_ = nullptr;
    T* c_ = nullptr;
    std::int32_t* arg32_ = nullptr;
    std::int64_t* arg64_ = nullptr;
};

template <semiring S, class T>
void run_with(problem const& p) {
    if constexpr (S != semiring::plus_times) {
        if (p.arg != nullptr) return host_product<S, T, true>{p}.run();
    }
    host_product<S, T, false>{p}.run();
}

template <class T>
void run_typed(semiring s, problem const& p) {
    switch (s) {
        case semiring::max_plus: return run_with<semiring::max_plus, T>(p);
        case semiring::min_plus: return run_with<semiring::min_plus, T>(p);
        case semiring::max_mul: return run_with<semiring::max_mul, T>(p);
        case semiring::and_or: return run_with<semiring::and_or, T>(p);
        case semiring::plus_times: return run_with<semiring::plus_times, T>(p);
    }
}

}  // namespace

result<void> cpu::run(semiring s, scalar type, product_call const& call) {
    if (s == semiring::plus_times && call.arg != nullptr)
        return fail(errc::invalid_argument, "tropical: a sum has no winner; call plus_times without them");
    KILN_TRY(auto const p, problem_of(call, call.arg != nullptr ? with_winners::yes : with_winners::no));
    if (p.m == 0 || p.n == 0 || p.batch == 0) return {};
    switch (type) {
        case scalar::f32: run_typed<float>(s, p); return {};
        case scalar::f64: run_typed<double>(s, p); return {};
        case scalar::i32: run_typed<std::int32_t>(s, p); return {};
        case scalar::i64: run_typed<std::int64_t>(s, p); return {};
        default:
            return fail(errc::invalid_argument, "tropical: elements are f32, f64, i32 or i64, not {}",
                        kiln::name_of(type));
    }
}

}  // namespace kiln::tropical
