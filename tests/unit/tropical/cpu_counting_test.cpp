// SPDX-License-Identifier: Apache-2.0
#include <kiln/tropical/counting.hpp>

#include "support/tropical_reference.hpp"

#include <gtest/gtest.h>

namespace kiln::tropical_tests {

namespace {

using namespace tropical;

// Row-major, dense, from the words of the header: the best value, then a second pass that counts who reaches it.
template <class T>
void expect_counted(semiring s, shape const& size, std::vector<T> const& a, std::vector<std::int64_t> const& wa,
                    std::vector<T> const& b, std::vector<std::int64_t> const& wb) {
    std::vector<T> c(static_cast<std::size_t>(size.m * size.n), T{77}), values(c.size());
    std::vector<std::int64_t> ways(c.size(), -5);
    cpu::counting<T>(s, size, {a.data(), wa.data()}, {b.data(), wb.data()}, {c.data(), ways.data()}).value();
    cpu::product<T>(s, size, {a.data()}, {b.data()}, {values.data()}).value();
    for (std::int64_t i = 0; i < size.m; ++i) {
        for (std::int64_t j = 0; j < size.n; ++j) {
            auto const at = static_cast<std::size_t>(i * size.n + j);
            EXPECT_EQ(std::memcmp(&c[at], &values[at], sizeof(T)), 0) << "the values are those of the product";
            std::int64_t expected = 0;
            for (std::int64_t k = 0; k < size.k; ++k) {
                auto const x = static_cast<std::size_t>(i * size.k + k), y = static_cast<std::size_t>(k * size.n + j);
                if (a[x] + b[y] == values[at] && values[at] != zero_of<T>(s)) expected += wa[x] * wb[y];
            }
            EXPECT_EQ(ways[at], expected) << i << ", " << j;
        }
    }
}

template <class T>
std::vector<std::int64_t> some_ways(std::vector<T> const& of, std::uint64_t seed) {
    numbers g{seed};
    std::vector<std::int64_t> out(of.size());
    for (auto& w : out) w = g.below(4);
    return out;
}

template <class T>
class cpu_counting : public testing::Test {};
using counted_types = testing::Types<float, double>;
TYPED_TEST_SUITE(cpu_counting, counted_types);

}  // namespace

TYPED_TEST(cpu_counting, counts_who_reaches_the_best) {
    using T = TypeParam;
    for (auto const s : {semiring::max_plus, semiring::min_plus}) {
        for (auto const kind : {data_kind::ties, data_kind::special, data_kind::rare}) {
            shape const size{.m = 7, .n = 9, .k = 30};
            auto const a = make_data<T>(7 * 30, kind, 1), b = make_data<T>(30 * 9, kind, 2);
            expect_counted<T>(s, size, a, some_ways(a, 3), b, some_ways(b, 4));
        }
    }
}

// Shortest paths of two steps through a square: there are two of them, and one more in C already.
TYPED_TEST(cpu_counting, counts_shortest_paths_and_adds_to_those_there) {
    using T = TypeParam;
    constexpr T far = std::numeric_limits<T>::infinity();
    std::vector<T> const d{0, 1, 1, far, far, 0, far, 1, far, far, 0, 1, far, far, far, 0};
    std::vector<T> c(16, far);
    std::vector<std::int64_t> ways(16, 0);
    c[3] = 2, ways[3] = 1;
    c[12] = 5, ways[12] = 6;
    shape const size{.m = 4, .n = 4, .k = 4};
    cpu::counting<T>(semiring::min_plus, size, {d.data()}, {d.data()}, {c.data(), ways.data()}, accumulation::into_c)
        .value();
    EXPECT_EQ(c[3], T{2});
    EXPECT_EQ(ways[3], 3) << "by either corner, and the one that was there";
    EXPECT_EQ(c[12], T{5});
    EXPECT_EQ(ways[12], 6) << "nothing better: as it was";
    EXPECT_EQ(ways[0], 1);
    EXPECT_EQ(c[4], far);
    EXPECT_EQ(ways[4], 0) << "no path, no way";
}

TEST(counting, what_it_is_not_for_is_refused) {
    counting_call call{.values = {.shape = {.m = 1, .n = 1, .k = 1}}};
    EXPECT_EQ(cpu::run(semiring::max_mul, scalar::f32, call).error().code(), errc::invalid_argument);
    EXPECT_EQ(cpu::run(semiring::max_plus, scalar::i32, call).error().code(), errc::invalid_argument);
    float x = 0;
    call.values.a = call.values.b = &x;
    call.values.c = &x;
    EXPECT_EQ(cpu::run(semiring::max_plus, scalar::f32, call).error().code(), errc::invalid_argument)
        << "nowhere to count";
    call.values.batch = batch_form::by_pointer;
    EXPECT_EQ(cpu::run(semiring::max_plus, scalar::f32, call).error().code(), errc::invalid_argument);
}

}  // namespace kiln::tropical_tests
