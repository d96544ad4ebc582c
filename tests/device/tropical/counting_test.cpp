// SPDX-License-Identifier: Apache-2.0
#include <kiln/tropical/counting.hpp>

#include "device/prims/prims_fixture.hpp"
#include "support/tropical_reference.hpp"

namespace kiln::device_tests {

namespace {

using namespace tropical;
using namespace tropical_tests;
using tropical_tests::make_data;

template <class T>
class tropical_counting : public on_device {
protected:
    void check(semiring s, shape const& size, transposed a_as, transposed b_as, accumulation into, std::uint64_t seed) {
        auto const on = stream::make().value();
        auto const count = [](std::int64_t x) { return static_cast<std::size_t>(x); };
        tropical_tests::numbers g{seed};
        auto const ways = [&](std::size_t n) {
            std::vector<std::int64_t> out(n);
            for (auto& w : out) w = g.below(4);
            return out;
        };
        auto const kind = seed % 2 == 0 ? data_kind::ties : data_kind::special;
        auto const a = make_data<T>(count(size.m * size.k * size.batch), kind, seed);
        auto const b = make_data<T>(count(size.k * size.n * size.batch), kind, seed + 1);
        auto c = make_data<T>(count(size.m * size.n * size.batch), kind, seed + 2);
        auto const wa = ways(a.size()), wb = ways(b.size());
        auto wc = ways(c.size());
        device_vector<T> const da{on, a}, db{on, b}, dc{on, c};
        device_vector<std::int64_t> const dwa{on, wa}, dwb{on, wb}, dwc{on, wc};
        bool const weighted = seed % 3 != 0;
        device_tests::made(counting<T>(s))(on, size, {da.data(), weighted ? dwa.data() : nullptr, 0, 0, a_as},
                                           {db.data(), weighted ? dwb.data() : nullptr, 0, 0, b_as},
                                           {dc.data(), dwc.data()}, into)
            .value();
        tropical::cpu::counting<T>(s, size, {a.data(), weighted ? wa.data() : nullptr, 0, 0, a_as},
                                   {b.data(), weighted ? wb.data() : nullptr, 0, 0, b_as}, {c.data(), wc.data()}, into)
            .value();
        auto const where = std::to_string(size.m) + " x " + std::to_string(size.n) + " x " + std::to_string(size.k);
        EXPECT_TRUE(equals("values of " + where, c, dc.get(on)));
        EXPECT_EQ(wc, dwc.get(on)) << "counts of " << where;
    }
};
using counted_types = testing::Types<float, double>;
TYPED_TEST_SUITE(tropical_counting, counted_types);

}  // namespace

TYPED_TEST(tropical_counting, has_the_bits_of_the_cpu) {
    std::uint64_t seed = 1;
    for (auto const s : {semiring::max_plus, semiring::min_plus}) {
        for (auto const layout : {order::row_major, order::column_major}) {
            for (auto const a_as : {transposed::no, transposed::yes}) {
                for (auto const into : {accumulation::replace, accumulation::into_c}) {
                    auto const b_as = seed % 4 < 2 ? transposed::no : transposed::yes;
                    this->check(s, {.m = 1, .n = 1, .k = 1, .layout = layout}, a_as, b_as, into, ++seed);
                    this->check(s, {.m = 70, .n = 65, .k = 33, .batch = 2, .layout = layout}, a_as, b_as, into, ++seed);
                    this->check(s, {.m = 3, .n = 200, .k = 129, .layout = layout}, a_as, b_as, into, ++seed);
                    this->check(s, {.m = 64, .n = 5, .k = 0, .layout = layout}, a_as, b_as, into, ++seed);
                }
            }
        }
    }
}

}  // namespace kiln::device_tests
