// SPDX-License-Identifier: Apache-2.0
#include "device/prims/prims_fixture.hpp"
#include "support/tropical_reference.hpp"

namespace kiln::device_tests {

namespace {

using namespace tropical;
using namespace tropical_tests;
using tropical_tests::make_data;

template <class T>
class tropical_backward : public on_device {
protected:
    void SetUp() override {
        on_device::SetUp();
        if (!IsSkipped()) stream_.emplace(stream::make().value());
    }
    stream const& on() const { return *stream_; }

    // Winners near `spread` values of k: 1 makes every sum collide.
    void check(gradient_rule rule, shape const& size, transposed a_as, transposed b_as, std::int64_t spread,
               std::uint64_t seed) {
        tropical_tests::numbers g{seed};
        auto const count = [](std::int64_t x) { return static_cast<std::size_t>(x); };
        auto const in = make_data<T>(count(size.m * size.n * size.batch), data_kind::mixed, seed);
        auto const a = make_data<T>(count(size.m * size.k * size.batch), data_kind::mixed, seed + 1);
        auto const b = make_data<T>(count(size.k * size.n * size.batch), data_kind::mixed, seed + 2);
        std::vector<std::int32_t> k(in.size());
        for (auto& x : k)
            x = static_cast<std::int32_t>(g.below(20) == 0 ? -1 : size.k - 1 - g.below(std::min(spread, size.k)));
        std::vector<T> da(a.size(), T{9}), db(b.size(), T{9});
        backward_call call{.shape = size,
                           .g = in.data(),
                           .arg = k.data(),
                           .a = a.data(),
                           .b = b.data(),
                           .da = da.data(),
                           .db = db.data()};
        call.a_as = a_as;
        call.b_as = b_as;
        tropical::cpu::run(rule, scalar_of<T>(), call).value();

        auto const by = device_tests::made(tropical::backward<T>(rule));
        device_vector<T> const din{on(), in}, dda{a.size()}, ddb{b.size()}, fa{on(), a}, fb{on(), b};
        device_vector<std::int32_t> const dk{on(), k};
        call.g = din.data(), call.arg = dk.data(), call.a = fa.data(), call.b = fb.data();
        call.da = dda.data(), call.db = ddb.data();
        auto const done = by.run(on(), call);
        ASSERT_TRUE(done.has_value()) << done.error().message();
        auto const where = std::to_string(size.m) + " x " + std::to_string(size.n) + " x " + std::to_string(size.k);
        EXPECT_TRUE(equals("dA of " + where, da, dda.get(on())));
        EXPECT_TRUE(equals("dB of " + where, db, ddb.get(on())));
    }

private:
    std::optional<stream> stream_;
};
using float_types = testing::Types<float, double>;
TYPED_TEST_SUITE(tropical_backward, float_types);

}  // namespace

TYPED_TEST(tropical_backward, equals_the_cpu_bit_for_bit) {
    std::uint64_t seed = 1;
    std::vector<shape> shapes{
        {.m = 7, .n = 5, .k = 3}, {.m = 65, .n = 33, .k = 40, .batch = 2}, {.m = 1, .n = 1, .k = 1}};
    // The last ones are longer than shared memory.
    if (!quick())
        shapes.insert(shapes.end(),
                      {{.m = 300, .n = 257, .k = 511}, {.m = 20, .n = 500, .k = 9001}, {.m = 19, .n = 3, .k = 70000}});
    for (auto size : shapes) {
        for (auto const layout : {order::row_major, order::column_major}) {
            size.layout = layout;
            for (auto const rule : {gradient_rule::plus, gradient_rule::mul}) {
                for (auto const as : {transposed::no, transposed::yes}) {
                    for (std::int64_t const spread : {1, 5, 1000000}) {
                        auto const other = seed % 2 == 0 ? transposed::no : transposed::yes;
                        this->check(rule, size, as, other, spread, seed++);
                        if (this->HasFailure()) return;
                    }
                }
            }
        }
    }
}

}  // namespace kiln::device_tests
