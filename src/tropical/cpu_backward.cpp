// SPDX-License-Identifier: Apache-2.0
#include "tropical/problem.hpp"

#include <cmath>

namespace kiln::tropical {

namespace {

template <class T>
class host_backward {
public:
    host_backward(gradient const& p, gradient_rule rule)
        : p_{p},
          rule_{rule},
          da_(static_cast<std::size_t>(p.m) * static_cast<std::size_t>(p.k)),
          db_(static_cast<std::size_t>(p.n) * static_cast<std::size_t>(p.k)) {}

    void run() {
        for (std::int64_t w = 0; w < p_.batch; ++w) {
            std::fill(da_.begin(), da_.end(), T{0});
            std::fill(db_.begin(), db_.end(), T{0});
            // For every row j ascends, for every column i: the device's order.
            for (std::int64_t n = 0; n < p_.n; ++n) {
                for (std::int64_t m = 0; m < p_.m; ++m) take(w, m, n);
            }
            write(da_, static_cast<T*>(p_.da) + w * p_.stride_da, p_.m, p_.ldda, flag::da_along_k);
            write(db_, static_cast<T*>(p_.db) + w * p_.stride_db, p_.n, p_.lddb, flag::db_along_k);
        }
    }

private:
    void take(std::int64_t w, std::int64_t m, std::int64_t n) {
        auto const at = w * p_.stride_arg + n * p_.ldarg + m;
        std::int64_t const k = (p_.flags & flag::arg_is_64) != 0 ? static_cast<std::int64_t const*>(p_.arg)[at]
                                                                 : static_cast<std::int32_t const*>(p_.arg)[at];
        if (k < 0 || k >= p_.k) return;
        T const g = static_cast<T const*>(p_.g)[w * p_.stride_g + n * p_.ldg + m];
        T& to_a = da_[static_cast<std::size_t>(m * p_.k + k)];
        T& to_b = db_[static_cast<std::size_t>(n * p_.k + k)];
        if (rule_ == gradient_rule::plus) {
            to_a += g;
            to_b += g;
            return;
        }
        bool const a_k = (p_.flags & flag::a_along_k) != 0, b_k = (p_.flags & flag::b_along_k) != 0;
        T const a = static_cast<T const*>(p_.a)[w * p_.stride_a + (a_k ? m * p_.lda + k : k * p_.lda + m)];
        T const b = static_cast<T const*>(p_.b)[w * p_.stride_b + (b_k ? n * p_.ldb + k : k * p_.ldb + n)];
        to_a = std::fma(g, b, to_a);
        to_b = std::fma(g, a, to_b);
    }

    void write(std::vector<T> const& from, T* to, std::int64_t lines, std::int64_t ld, std::uint32_t along_k) const {
        for (std::int64_t l = 0; l < lines; ++l) {
            for (std::int64_t k = 0; k < p_.k; ++k) {
                T& out = to[(p_.flags & along_k) != 0 ? l * ld + k : k * ld + l];
                T const sum = from[static_cast<std::size_t>(l * p_.k + k)];
                out = (p_.flags & flag::accumulate) != 0 ? out + sum : sum;
            }
        }
    }

    gradient p_;
    gradient_rule rule_;
    std::vector<T> da_, db_;
};

}  // namespace

result<void> cpu::run(gradient_rule rule, scalar type, backward_call const& call) {
    KILN_TRY(auto const p, gradient_of(call, rule));
    if (p.k == 0 || p.batch == 0) return {};
    if (type == scalar::f32) host_backward<float>{p, rule}.run();
    else if (type == scalar::f64) host_backward<double>{p, rule}.run();
    else return fail(errc::invalid_argument, "tropical: gradients are f32 or f64, not {}", kiln::name_of(type));
    return {};
}

}  // namespace kiln::tropical
