// SPDX-License-Identifier: Apache-2.0
#include "tropical/units.hpp"

#include "compile/keys.hpp"
#include "engine/pack.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace kiln::tropical {

namespace {

engine_detail::unit_pack const& this_pack() {
    return dynamic_cast<engine_detail::unit_pack const&>(*engine_detail::find_pack("tropical"));
}
std::vector<spec> const& specs() { return this_pack().specs(); }
unit const* find_unit(std::string_view name) { return this_pack().find_unit(name); }

}  // namespace

// The 31 kernels whose compilation at every start this pack replaces.
TEST(tropical_units, have_the_names_of_the_31_kernels) {
    std::set<std::string> names;
    for (auto const& s : specs()) names.insert(s.name);
    EXPECT_EQ(names.size(), specs().size()) << "a name appears twice";
    std::vector<std::string> wanted;
    for (auto const* const ring : {"maxplus", "minplus", "maxmul"}) {
        for (auto const* const type : {"f32", "f64", "i32", "i64"}) {
            for (auto const* const more : {"", "_with_argmax"})
                wanted.push_back(fmt::format("tropical_{}_{}_nn{}", ring, type, more));
        }
        wanted.push_back(fmt::format("tropical_{}_f32_nn_batched_with_argmax", ring));
    }
    for (auto const* const side : {"a", "b"}) {
        for (auto const* const type : {"f32", "f64"})
            wanted.push_back(fmt::format("tropical_backward_{}_{}", side, type));
    }
    EXPECT_EQ(wanted.size(), 31U);
    for (auto const& name : wanted) {
        EXPECT_TRUE(names.contains(name)) << name;
        EXPECT_NE(find_unit(name), nullptr) << name;
    }
    EXPECT_EQ(find_unit("tropical_nothing"), nullptr);
}

TEST(tropical_units, differ_in_what_they_are_compiled_from) {
    std::set<std::string> texts;
    EXPECT_EQ(this_pack().units().size(), 44U);
    for (auto const& u : this_pack().units()) {
        auto text = u.source;
        for (auto const& o : u.options) text += "\n" + o;
        EXPECT_TRUE(texts.insert(text).second) << u.name;
    }
}

// A first call where they ship looks for no file and no compiler.
TEST(tropical_units, read_no_file) {
    auto const t = target::parse("sm_90").value();
    for (auto const& u : this_pack().units()) EXPECT_TRUE(compile::identify(u, t, {}).value().self_contained) << u.name;
}

TEST(tropical_units, are_named_by_what_a_call_needs) {
    EXPECT_THAT(units_of({}), testing::ElementsAre("tropical_maxplus_f32_nn"));
    EXPECT_THAT(units_of({.semiring = semiring::max_mul, .type = scalar::f64, .gradients = with_gradients::yes}),
                testing::ElementsAre("tropical_maxmul_f64_nn_with_argmax", "tropical_maxmul_backward_f64"));
    for (auto const& s : specs()) EXPECT_NE(find_unit(s.name), nullptr) << s.name;
}

TEST(tropical_units, can_be_demanded_by_name) {
    auto const found = engine_detail::find_recipe("tropical_minplus_i64_nn_with_argmax");
    ASSERT_TRUE(found.has_value()) << found.error().message();
    EXPECT_EQ(found->kind, "tropical");
    EXPECT_FALSE(engine_detail::find_recipe("tropical_nothing").has_value());
}

TEST(tropical_tuning, fits_the_kernels_assumptions) {
    for (auto const arg : {with_winners::no, with_winners::yes}) {
        for (auto const type : {scalar::f32, scalar::f64, scalar::i32, scalar::i64}) {
            auto const& by = tuning_of(semiring::max_plus, type, arg);
            EXPECT_LE(shared_bytes(by.small, type, arg), 64U << 10);  // what every supported architecture has
            EXPECT_LE(shared_bytes(by.large.value_or(by.small), type, arg), 227U << 10);
        }
    }
}

TEST(tropical_tuning, chooses_by_shape) {
    device_facts const h200{132, true, true};
    auto const choice = [&](std::int32_t n, std::int64_t batch, std::int32_t k, device_facts const& on) {
        problem p{};
        p.m = p.n = n;
        p.k = k;
        p.batch = batch;
        return choose(tuning_of(semiring::max_plus, scalar::f32, with_winners::no), p, with_winners::no, on);
    };
    auto const alone = [](kernel_choice kernel) { return launch_choice{kernel, false}; };
    auto const shared = [](kernel_choice kernel) { return launch_choice{kernel, true}; };
    EXPECT_EQ(choice(256, 1, 256, h200), alone(kernel_choice::split));
    EXPECT_EQ(choice(512, 1, 512, h200), alone(kernel_choice::split));
    EXPECT_EQ(choice(700, 1, 700, h200), alone(kernel_choice::small));
    EXPECT_EQ(choice(256, 1, 256, {132, true, false}), alone(kernel_choice::small));
    EXPECT_EQ(choice(64, 1, 64, h200), alone(kernel_choice::small));
    EXPECT_EQ(choice(64, 1024, 64, h200), alone(kernel_choice::small));
    EXPECT_EQ(choice(256, 64, 256, h200), alone(kernel_choice::large));
    EXPECT_EQ(choice(1024, 1, 1024, h200), shared(kernel_choice::small));
    EXPECT_EQ(choice(1500, 1, 1500, h200), shared(kernel_choice::large));
    EXPECT_EQ(choice(2048, 1, 2048, h200), alone(kernel_choice::large));
    EXPECT_EQ(choice(4096, 1, 4096, h200), shared(kernel_choice::large));
    EXPECT_EQ(choice(4096, 1, 4096, {132, false, true}), alone(kernel_choice::small));
    // More tiles than 32 bits can count.
    EXPECT_EQ(choice(1, std::int64_t{1} << 31, 1, h200), launch_choice{});
    problem p{};
    p.m = p.n = 64;
    p.k = most_steps_with_arg + 1;
    p.batch = 1;
    auto const& with_arg = tuning_of(semiring::max_plus, scalar::f32, with_winners::yes);
    EXPECT_EQ(choose(with_arg, p, with_winners::yes, h200), launch_choice{});
}

TEST(tropical_tuning, shares_only_what_has_no_order) {
    problem p{};
    p.m = p.n = p.k = 1024;
    p.batch = 1;
    device_facts const h200{132, true, true};
    auto const shares = [&](semiring s, scalar type, with_winners arg) {
        return choose(tuning_of(s, type, arg), p, arg, h200).shares;
    };
    EXPECT_TRUE(shares(semiring::max_plus, scalar::f64, with_winners::no));
    EXPECT_TRUE(shares(semiring::and_or, scalar::i32, with_winners::no));
    EXPECT_FALSE(shares(semiring::plus_times, scalar::f64, with_winners::no));
    EXPECT_FALSE(shares(semiring::max_plus, scalar::f64, with_winners::yes));
    p.k = 0;
    EXPECT_FALSE(shares(semiring::max_plus, scalar::f64, with_winners::no));
}

}  // namespace kiln::tropical
