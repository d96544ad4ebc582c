// SPDX-License-Identifier: Apache-2.0
#include "support/tropical_reference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::tropical_tests {

namespace {

using namespace tropical;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr semiring all_semirings[] = {semiring::max_plus, semiring::min_plus, semiring::max_mul, semiring::and_or,
                                      semiring::plus_times};

template <class T>
class cpu_product : public testing::Test {
protected:
    void check(semiring s, std::int64_t m, std::int64_t n, std::int64_t k, data_kind kind, std::uint64_t seed) {
        random_case<T> c{s, m, n, k, kind, seed};
        auto const want = c.expected(s);
        cpu::product<T>(s, c.size, c.a, c.b, c.c).value();
        EXPECT_EQ(c.difference(want, false), "") << name_of(s) << " data " << static_cast<int>(kind);
        if (s == semiring::plus_times) return;
        std::fill(c.host_c.begin(), c.host_c.end(), T{77});
        cpu::product<T>(s, c.size, c.a, c.b, c.c, c.arg).value();
        EXPECT_EQ(c.difference(want, true), "") << name_of(s) << " with winners, data " << static_cast<int>(kind);
    }
};
using element_types = testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(cpu_product, element_types);

}  // namespace

TYPED_TEST(cpu_product, small_shapes_are_right) {
    std::uint64_t seed = 1;
    for (auto const s : all_semirings) {
        for (std::int64_t m = 1; m <= 20; ++m) {
            for (std::int64_t n = 1; n <= 20; n += 1 + m % 3) {
                for (std::int64_t k = 0; k <= 20; k += 1 + n % 4) {
                    auto const kind = all_kinds[seed % std::size(all_kinds)];
                    this->check(s, m, n, k, kind, seed++);
                    if (this->HasFailure()) return;
                }
            }
        }
    }
}

TYPED_TEST(cpu_product, panels_and_their_edges_are_right) {
    std::uint64_t seed = 1;
    for (auto const s : all_semirings) {
        for (auto const kind : all_kinds) {
            for (auto const& [m, n, k] : {std::tuple{67, 13, 131}, {128, 64, 64}, {1, 97, 301}, {131, 1, 17}}) {
                this->check(s, m, n, k, kind, seed++);
                if (this->HasFailure()) return;
            }
        }
    }
}

TEST(cpu_tropical, ties_go_to_the_first_k) {
    float const a[] = {1, 2, 2, 1}, b[] = {1, 0, 0, 1};
    float c = 0;
    std::int32_t k = 9;
    cpu::product<float>(semiring::max_plus, {.m = 1, .n = 1, .k = 4}, {a}, {b}, {&c}, {.data = &k}).value();
    EXPECT_EQ(c, 2);
    EXPECT_EQ(k, 0);
}

TEST(cpu_tropical, no_path_is_told_apart) {
    float const inf = std::numeric_limits<float>::infinity();
    float const a[] = {inf, 1}, b[] = {2, inf};
    float c = 0;
    std::int64_t k = 9;
    cpu::product<float>(semiring::min_plus, {.m = 1, .n = 1, .k = 2}, {a}, {b}, {&c},
                        {.data = &k, .width = index_width::i64})
        .value();
    EXPECT_EQ(c, inf);
    EXPECT_EQ(k, -1);
    cpu::product<float>(semiring::min_plus, {.m = 1, .n = 1, .k = 2}, {a}, {b}, {&c},
                        {.data = &k, .width = index_width::i64, .none = 0})
        .value();
    EXPECT_EQ(k, 0);
}

TEST(cpu_tropical, nan_is_ignored_and_zeros_are_positive) {
    float const nan = std::numeric_limits<float>::quiet_NaN();
    float const a[] = {nan, -0.0F, -3}, b[] = {1, -0.0F, 1};
    float c = 5;
    cpu::product<float>(semiring::max_plus, {.m = 1, .n = 1, .k = 3}, {a}, {b}, {&c}).value();
    EXPECT_EQ(c, 0);
    EXPECT_FALSE(std::signbit(c));
}

TEST(cpu_tropical, integers_are_exact_where_others_clip) {
    std::int32_t const a[] = {-30000, 2000000000, std::numeric_limits<std::int32_t>::min()};
    std::int32_t const b[] = {-30000, 2000000000, 5};
    std::int32_t c[9] = {};
    cpu::product<std::int32_t>(semiring::max_plus, {.m = 3, .n = 3, .k = 1}, {a}, {b}, {c}).value();
    constexpr auto none = zero_of<std::int32_t>(semiring::max_plus);
    EXPECT_THAT(c, ElementsAre(-60000, 1999970000, -29995, 1999970000, std::numeric_limits<std::int32_t>::max(),
                               2000000005, none, none, none));
}

TEST(cpu_tropical, no_steps_write_the_zero_and_accumulation_keeps_what_is_better) {
    double c[2] = {7, 7};
    cpu::product<double>(semiring::max_plus, {.m = 1, .n = 2, .k = 0}, {}, {}, {c}).value();
    EXPECT_EQ(c[0], -std::numeric_limits<double>::infinity());

    double const a[] = {1}, b[] = {2, 9};
    double d[2] = {5, 5};
    std::int32_t k[2] = {};
    cpu::product<double>(semiring::max_plus, {.m = 1, .n = 2, .k = 1}, {a}, {b}, {d}, {.data = k}, accumulation::into_c)
        .value();
    EXPECT_THAT(d, ElementsAre(5, 10));
    EXPECT_THAT(k, ElementsAre(-1, 0));
}

TEST(cpu_tropical, nothing_is_touched_where_there_is_nothing_to_do) {
    EXPECT_TRUE(cpu::product<float>(semiring::max_plus, {.m = 0, .n = 5, .k = 5}, {}, {}, {}).has_value());
    EXPECT_TRUE(cpu::product<float>(semiring::max_plus, {.m = 3, .n = 0, .k = 5}, {}, {}, {}).has_value());
    EXPECT_TRUE(cpu::product<float>(semiring::max_plus, {.m = 3, .n = 3, .k = 5, .batch = 0}, {}, {}, {}).has_value());
}

TEST(cpu_tropical, wrong_calls_name_what_is_wrong) {
    float x = 0;
    auto const message = [](result<void> const& r) { return r ? std::string{"no error"} : r.error().message(); };
    EXPECT_THAT(message(cpu::product<float>(semiring::max_plus, {.m = -1, .n = 1, .k = 1}, {&x}, {&x}, {&x})),
                HasSubstr("m = -1"));
    EXPECT_THAT(message(cpu::product<float>(semiring::max_plus, {.m = 1, .n = 1, .k = 4}, {&x, 3}, {&x}, {&x})),
                HasSubstr("leading dimension 3 of A"));
    EXPECT_THAT(message(cpu::product<float>(semiring::max_plus, {.m = 1, .n = 1, .k = 1}, {&x}, {}, {&x})),
                HasSubstr("B is null"));
}

TEST(cpu_tropical, batches_by_pointer) {
    std::int32_t const a0[] = {1}, a1[] = {10}, b0[] = {2}, b1[] = {20};
    std::int32_t c0 = 0, c1 = 0;
    std::int32_t const* as[] = {a0, a1};
    std::int32_t const* bs[] = {b0, b1};
    std::int32_t* cs[] = {&c0, &c1};
    product_call call{.shape = {.m = 1, .n = 1, .k = 1, .batch = 2}, .a = as, .b = bs, .c = cs};
    call.batch = batch_form::by_pointer;
    cpu::run(semiring::max_plus, scalar::i32, call).value();
    EXPECT_EQ(c0, 3);
    EXPECT_EQ(c1, 30);
}

}  // namespace kiln::tropical_tests
