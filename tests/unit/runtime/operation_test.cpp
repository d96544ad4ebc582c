// SPDX-License-Identifier: Apache-2.0
#include "runtime_fixture.hpp"

#include <kiln/activity.hpp>

namespace kiln::runtime {

using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr std::array variants{
    variant{.name = "gpu",
            .where = place::gpu,
            .types = types(scalar::i32, scalar::f32),
            .most_items = 1'000'000,
            .needs = "first_{type} second",
            .varying = float_types},
    variant{.name = "cpu", .where = place::cpu, .types = types(scalar::i32, scalar::f32, scalar::i64)}};
constinit operation const sum{"test_sum", "tests", {.pairwise = 1000, .broadcast = 100}, variants};

constexpr std::array cpu_only{variant{.name = "cpu", .where = place::cpu}};
constinit operation const plain{"test_plain", "tests", {.pairwise = 10}, cpu_only};

call_facts ints(std::uint64_t items, residency where = residency::host) {
    return {.items = items, .type = scalar::i32, .where = where};
}

}  // namespace

class operation_test : public runtime_test {
protected:
    ~operation_test() override { sum.forget_measured(), plain.forget_measured(); }
};

TEST_F(operation_test, cpu_mode_touches_no_driver) {
    set_execution_mode(execution_mode::cpu);
    auto const how = decide(sum, ints(1'000'000)).value();
    EXPECT_EQ(how.selected, place::cpu);
    EXPECT_EQ(how.reason, "asked");
    EXPECT_EQ(probes_, 0);
}

TEST_F(operation_test, cpu_mode_refuses_device_data_and_names_the_call_that_moves_it) {
    set_execution_mode(execution_mode::cpu);
    auto const refused = decide(sum, ints(10, residency::device));
    EXPECT_EQ(refused.error().code(), errc::invalid_argument);
    EXPECT_THAT(refused.error().message(), HasSubstr("to_host_sync()"));
}

TEST_F(operation_test, gpu_mode_without_a_gpu_fails_loudly_and_says_what_would_work) {
    set_execution_mode(execution_mode::gpu);
    auto const refused = decide(sum, ints(1'000'000));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::no_device);
    EXPECT_THAT(refused.error().message(), HasSubstr("test_sum: mode gpu, but no CUDA driver was found"));
    EXPECT_THAT(refused.error().message(), HasSubstr("mode auto would run it on the CPU"));
}

TEST_F(operation_test, gpu_mode_without_a_variant_names_the_types_there_are) {
    one_gpu();
    set_execution_mode(execution_mode::gpu);
    auto const refused = decide(sum, {.items = 10, .type = scalar::i64});
    EXPECT_EQ(refused.error().code(), errc::unsupported);
    EXPECT_THAT(refused.error().message(), HasSubstr("no gpu variant takes i64; there are variants for i32, f32"));
}

TEST_F(operation_test, auto_stays_on_the_cpu_below_the_crossover_and_does_not_ask_for_a_gpu) {
    auto const how = decide(sum, ints(999)).value();
    EXPECT_EQ(how.selected, place::cpu);
    EXPECT_EQ(how.reason, "below-crossover");
    EXPECT_EQ(how.crossover, 1000u);
    EXPECT_FALSE(how.fell_back);
    EXPECT_EQ(probes_, 0);
}

TEST_F(operation_test, auto_promotes_host_data_above_the_crossover) {
    one_gpu();
    auto const how = decide(sum, ints(1000)).value();
    EXPECT_EQ(how.selected, place::gpu);
    EXPECT_EQ(how.chosen->name, "gpu");
    EXPECT_EQ(how.reason, "above-crossover");
}

TEST_F(operation_test, the_crossover_depends_on_the_shape) {
    one_gpu();
    auto call = ints(500);
    EXPECT_EQ(decide(sum, call)->selected, place::cpu);
    call.shape = call_shape::broadcast;
    EXPECT_EQ(decide(sum, call)->selected, place::gpu);
}

TEST_F(operation_test, auto_keeps_device_data_on_the_device_whatever_its_size) {
    one_gpu();
    auto const how = decide(sum, ints(1, residency::device)).value();
    EXPECT_EQ(how.selected, place::gpu);
    EXPECT_EQ(how.reason, "device-resident");
}

TEST_F(operation_test, device_data_without_a_variant_is_an_error_and_not_a_copy) {
    one_gpu();
    auto const refused = decide(sum, {.items = 1, .type = scalar::i64, .where = residency::device});
    EXPECT_EQ(refused.error().code(), errc::unsupported);
    EXPECT_THAT(refused.error().message(), HasSubstr("to_host_sync()"));
}

TEST_F(operation_test, auto_without_a_gpu_falls_back_and_says_so) {
    auto const before = activity_so_far();
    auto const how = decide(sum, ints(5000)).value();
    EXPECT_EQ(how.selected, place::cpu);
    EXPECT_EQ(how.reason, "no-gpu");
    EXPECT_TRUE(how.fell_back);
    EXPECT_EQ(activity_so_far().since(before).fallbacks, 1u);
    auto const told = last_of(event_kind::fell_back);
    EXPECT_EQ(told.unit.view(), "test_sum");
    EXPECT_EQ(told.reason.view(), "no-gpu");
    EXPECT_THAT(std::string{told.detail.view()}, HasSubstr("no CUDA driver"));
}

TEST_F(operation_test, a_size_no_gpu_variant_takes_falls_back_by_name) {
    one_gpu();
    EXPECT_EQ(decide(sum, ints(2'000'000))->reason, "no-variant");
}

TEST_F(operation_test, strict_mode_turns_a_fallback_into_an_error) {
    set_strict(true);
    auto const refused = decide(sum, ints(5000));
    EXPECT_EQ(refused.error().code(), errc::forbidden);
    EXPECT_THAT(refused.error().message(), HasSubstr("KILN_STRICT"));
    EXPECT_TRUE(decide(sum, ints(10))) << "a small call on the CPU is a choice and no fallback";
}

TEST_F(operation_test, determinism_is_kept_or_refused_and_never_ignored) {
    one_gpu();
    deterministic_scope const scope;
    call_facts floats{.items = 5000, .type = scalar::f32};
    auto const how = decide(sum, floats).value();
    EXPECT_EQ(how.selected, place::cpu);
    EXPECT_EQ(how.reason, "not-repeatable");
    EXPECT_EQ(decide(sum, ints(5000))->selected, place::gpu) << "integers do not round";
    floats.where = residency::device;
    EXPECT_THAT(decide(sum, floats).error().message(), HasSubstr("same bits twice"));
    scoped_execution_mode const gpu{execution_mode::gpu};
    EXPECT_EQ(decide(sum, floats).error().code(), errc::unsupported);
}

TEST_F(operation_test, an_operator_of_device_text_goes_to_the_gpu_or_nowhere) {
    auto call = ints(10);
    call.text = operator_text::device_only;
    EXPECT_THAT(decide(sum, call).error().message(), HasSubstr("only a GPU can run"));
    one_gpu();
    EXPECT_EQ(decide(sum, call)->reason, "device-operator");
}

TEST_F(operation_test, every_decision_leaves_an_event_with_all_of_it) {
    one_gpu();
    ASSERT_TRUE(decide(sum, ints(1234)));
    auto const told = last_of(event_kind::dispatched);
    EXPECT_EQ(told.unit.view(), "test_sum");
    EXPECT_EQ(told.target.view(), "gpu");
    EXPECT_EQ(told.reason.view(), "above-crossover");
    EXPECT_EQ(told.detail.view(), "auto -> gpu; i32 on host; crossover 1000 default");
    EXPECT_EQ(told.value, 1234);
}

TEST_F(operation_test, long_inputs_are_planned_anew_at_every_chunk) {
    one_gpu();
    std::vector<std::pair<std::uint64_t, place>> seen;
    auto const ran =
        decide_chunks(sum, ints(2500), 1000, [&](decision const& how, std::uint64_t first, std::uint64_t n) {
            seen.emplace_back(first, how.selected);
            EXPECT_EQ(n, first == 2000 ? 500u : 1000u);
            if (first == 0) no_gpu();
            return result<void>{};
        });
    EXPECT_TRUE(ran);
    EXPECT_THAT(seen,
                ElementsAre(std::pair{0u, place::gpu}, std::pair{1000u, place::cpu}, std::pair{2000u, place::cpu}));
}

TEST_F(operation_test, needs_are_named_for_a_type) {
    EXPECT_THAT(needs_of(variants[0], scalar::i32), ElementsAre("first_i32", "second"));
    EXPECT_TRUE(needs_of(variants[1], scalar::i32).empty());
}

TEST_F(operation_test, an_operation_without_a_gpu_variant_still_decides) {
    one_gpu();
    EXPECT_EQ(decide(plain, ints(5))->selected, place::cpu);
    EXPECT_EQ(decide(plain, ints(50))->reason, "no-variant");
}

}  // namespace kiln::runtime
