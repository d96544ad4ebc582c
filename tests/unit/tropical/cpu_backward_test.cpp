// SPDX-License-Identifier: Apache-2.0
#include "support/tropical_reference.hpp"

#include <gtest/gtest.h>

namespace kiln::tropical_tests {

namespace {

using namespace tropical;

struct gradients {
    std::vector<double> da, db;
};

// Row-major m x k and k x n; the loss is the sum of w times C.
gradients of(semiring s, shape const& size, std::vector<double> const& a, std::vector<double> const& b,
             std::vector<double> const& w) {
    auto const count = static_cast<std::size_t>(size.m * size.n);
    std::vector<double> c(count);
    std::vector<std::int32_t> k(count);
    cpu::product<double>(s, size, {a.data()}, {b.data()}, {c.data()}, {.data = k.data()}).value();
    gradients out{std::vector<double>(a.size(), 99), std::vector<double>(b.size(), 99)};
    auto const rule = s == semiring::max_mul ? gradient_rule::mul : gradient_rule::plus;
    cpu::run(rule, scalar::f64,
             {.shape = size,
              .g = w.data(),
              .arg = k.data(),
              .a = a.data(),
              .b = b.data(),
              .da = out.da.data(),
              .db = out.db.data()})
        .value();
    return out;
}

double loss(semiring s, shape const& size, std::vector<double> const& a, std::vector<double> const& b,
            std::vector<double> const& w) {
    std::vector<double> c(w.size());
    cpu::product<double>(s, size, {a.data()}, {b.data()}, {c.data()}).value();
    double sum = 0;
    for (std::size_t i = 0; i < c.size(); ++i) sum += w[i] * c[i];
    return sum;
}

class cpu_backward : public testing::TestWithParam<semiring> {};

}  // namespace

TEST_P(cpu_backward, agrees_with_finite_differences) {
    auto const s = GetParam();
    shape const size{.m = 6, .n = 5, .k = 7};
    // Far apart, so that a small step changes no winner.
    auto a = make_data<double>(42, data_kind::positive, 5), b = make_data<double>(35, data_kind::positive, 6);
    auto const w = make_data<double>(30, data_kind::mixed, 7);
    auto const got = of(s, size, a, b, w);
    constexpr double h = 1e-6;
    auto const slope = [&](double& x) {
        double const kept = x;
        x = kept + h;
        double const up = loss(s, size, a, b, w);
        x = kept - h;
        double const down = loss(s, size, a, b, w);
        x = kept;
        return (up - down) / (2 * h);
    };
    for (std::size_t i = 0; i < a.size(); ++i) {
        double const want = slope(a[i]);
        EXPECT_NEAR(got.da[i], want, 1e-3 * (1 + std::abs(want))) << "a " << i;
    }
    for (std::size_t i = 0; i < b.size(); ++i) {
        double const want = slope(b[i]);
        EXPECT_NEAR(got.db[i], want, 1e-3 * (1 + std::abs(want))) << "b " << i;
    }
}
INSTANTIATE_TEST_SUITE_P(semirings, cpu_backward,
                         testing::Values(semiring::max_plus, semiring::min_plus, semiring::max_mul));

TEST(cpu_backward_rules, follow_the_definition_and_skip_what_has_no_winner) {
    double const g[] = {1, 10, 100, 1000};
    std::int64_t const k[] = {0, 1, -1, 1};
    double da[4] = {5, 5, 5, 5}, db[4] = {};
    cpu::run(gradient_rule::plus, scalar::f64,
             {.shape = {.m = 2, .n = 2, .k = 2}, .g = g, .arg = k, .da = da, .db = db, .width = index_width::i64})
        .value();
    EXPECT_EQ((std::vector<double>{da, da + 4}), (std::vector<double>{1, 10, 0, 1000}));
    EXPECT_EQ((std::vector<double>{db, db + 4}), (std::vector<double>{1, 0, 0, 1010}));
}

}  // namespace kiln::tropical_tests
