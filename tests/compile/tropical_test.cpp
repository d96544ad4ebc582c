// SPDX-License-Identifier: Apache-2.0
// The pack's text compiles, in the forms and for the architectures that differ.
#include "compile/engine_fixture.hpp"
#include "tropical/units.hpp"

#include <algorithm>

namespace kiln::tropical {

namespace {
class tropical_compile : public testing::Test {};
}  // namespace

TEST_F(tropical_compile, every_form_compiles_for_old_and_new_architectures) {
    std::vector<unit> const units{product_unit(semiring::max_plus, scalar::f32, with_winners::no),
                                  product_unit(semiring::min_plus, scalar::i32, with_winners::yes),
                                  product_unit(semiring::plus_times, scalar::i64, with_winners::no),
                                  generic_unit(semiring::max_mul, scalar::f64, with_winners::yes),
                                  backward_unit(gradient_rule::mul, scalar::f64)};
    std::vector<pending<obtained>> made;
    for (auto const& u : units) {
        for (auto const* const arch : {"sm_75", "sm_90", "sm_120"})
            made.push_back(engine::process().artifact(u, target::parse(arch).value()));
    }
    for (std::size_t i = 0; i < made.size(); ++i) {
        auto const got = made[i].wait_sync();
        ASSERT_TRUE(got.has_value()) << units[i / 3].name << ": " << got.error().message() << "\n" << got.error().log();
        for (auto const& k : got->what->kernels) EXPECT_LE(k.registers, 255) << k.name;
    }
}

}  // namespace kiln::tropical
