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
    ~operation_test() override {
        sum.forget_measured(), plain.forget_measured();
        set_f32_per_f64({});
    }
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

constexpr std::array of_any_length{variant{.name = "gpu", .where = place::gpu, .needs = "x"},
                                   variant{.name = "cpu", .where = place::cpu}};
constinit operation const total{"test_total", "tests", {.pairwise = 1000}, of_any_length};

// A long input in chunks: what was run where, and what is said about it.
class chunk_test : public operation_test {
protected:
    struct chunk {
        std::uint64_t first, count;
        place where;
        std::string_view reason;
        bool operator==(chunk const&) const = default;
    };
    // `room` and `fails` see how many chunks have run.
    [[nodiscard]] result<void> take(call_facts const& call, std::function<std::uint64_t()> room,
                                    std::function<bool(std::uint64_t count)> fails = {}) {
        return decide_chunks(total, call,
                             {[=](std::uint64_t items) -> result<std::uint64_t> { return std::min(items, room()); },
                              [=, this](decision const& how, std::uint64_t first, std::uint64_t n) -> result<void> {
                                  if (how.selected == place::gpu && fails && fails(n))
                                      return error{errc::out_of_memory, "no more memory"};
                                  ran_.push_back({first, n, how.selected, how.reason});
                                  return {};
                              }});
    }
    std::vector<chunk> ran_;
};

TEST_F(chunk_test, an_input_the_device_has_room_for_is_one_chunk) {
    one_gpu();
    ASSERT_TRUE(take(ints(2500), [] { return 1'000'000; }));
    EXPECT_THAT(ran_, ElementsAre(chunk{0, 2500, place::gpu, "above-crossover"}));
    EXPECT_EQ(last_of(event_kind::dispatched).detail.view(), "auto -> gpu; i32 on host; crossover 1000 default");
}

TEST_F(chunk_test, nobody_asks_for_room_where_the_cpu_is_chosen) {
    auto const never = [] { return ADD_FAILURE(), std::uint64_t{0}; };
    ASSERT_TRUE(take(ints(10), never));
    ASSERT_TRUE(take(ints(0), never));
    set_execution_mode(execution_mode::cpu);
    ASSERT_TRUE(take(ints(5000), never));
    EXPECT_THAT(ran_, ElementsAre(chunk{0, 10, place::cpu, "below-crossover"},
                                  chunk{0, 0, place::cpu, "below-crossover"}, chunk{0, 5000, place::cpu, "asked"}));
}

TEST_F(chunk_test, a_longer_input_is_taken_in_chunks_of_what_fits_with_an_event_each) {
    one_gpu();
    auto const before = event_log::process().count(event_kind::dispatched);
    ASSERT_TRUE(take(ints(5000), [&] { return ran_.empty() ? 2000 : 1500; }));
    EXPECT_THAT(ran_, ElementsAre(chunk{0, 2000, place::gpu, "above-crossover"},
                                  chunk{2000, 1500, place::gpu, "above-crossover"},
                                  chunk{3500, 1500, place::gpu, "above-crossover"}));
    EXPECT_EQ(event_log::process().count(event_kind::dispatched), before + 3);
    auto const told = last_of(event_kind::dispatched);
    EXPECT_EQ(told.detail.view(), "auto -> gpu; i32 on host; crossover 1000 default; a chunk of 5000");
    EXPECT_EQ(told.value, 1500);
}

TEST_F(chunk_test, a_full_device_leaves_chunks_to_the_cpu_and_gets_the_rest_when_it_has_room_again) {
    one_gpu();
    auto const before = activity_so_far();
    // A chunk on the CPU is at most so long, so that the device is asked again.
    std::uint64_t const cpu_part = 1 << 20;
    auto const all = 2000 + cpu_part + 3000;
    ASSERT_TRUE(take(ints(all), [&] { return ran_.size() == 1 ? 999 : ran_.empty() ? 2000 : 3000; }));
    EXPECT_THAT(ran_,
                ElementsAre(chunk{0, 2000, place::gpu, "above-crossover"}, chunk{2000, cpu_part, place::cpu, "no-room"},
                            chunk{2000 + cpu_part, 3000, place::gpu, "above-crossover"}));
    EXPECT_EQ(activity_so_far().since(before).fallbacks, 1u);
    auto const told = last_of(event_kind::fell_back);
    EXPECT_EQ(told.reason.view(), "no-room");
    EXPECT_EQ(told.detail.view(), "the device has room for 999 of 1048576 items");
    set_strict(true);
    EXPECT_EQ(take(ints(5000), [] { return 999; }).error().code(), errc::forbidden);
}

TEST_F(chunk_test, a_chunk_memory_runs_out_for_is_taken_again_smaller_and_then_by_the_cpu) {
    one_gpu();
    ASSERT_TRUE(take(
        ints(8000), [] { return 8000; }, [](std::uint64_t n) { return n > 2000; }));
    EXPECT_THAT(ran_, ElementsAre(chunk{0, 2000, place::gpu, "above-crossover"},
                                  chunk{2000, 2000, place::gpu, "above-crossover"},
                                  chunk{4000, 2000, place::gpu, "above-crossover"},
                                  chunk{6000, 2000, place::gpu, "above-crossover"}));
    auto const told = last_of(event_kind::fell_back);
    EXPECT_EQ(told.reason.view(), "smaller-chunk");
    EXPECT_EQ(told.value, 2000);
    ran_.clear();
    ASSERT_TRUE(take(
        ints(8000), [] { return 8000; }, [](std::uint64_t) { return true; }));
    EXPECT_THAT(ran_, ElementsAre(chunk{0, 8000, place::cpu, "no-room"}));
    set_strict(true);
    EXPECT_EQ(take(
                  ints(8000), [] { return 8000; }, [](std::uint64_t) { return true; })
                  .error()
                  .code(),
              errc::out_of_memory);
}

TEST_F(chunk_test, gpu_mode_takes_whatever_chunks_there_is_room_for_or_fails) {
    one_gpu();
    set_execution_mode(execution_mode::gpu);
    ASSERT_TRUE(take(ints(25), [] { return 10; }));
    EXPECT_THAT(ran_, ElementsAre(chunk{0, 10, place::gpu, "asked"}, chunk{10, 10, place::gpu, "asked"},
                                  chunk{20, 5, place::gpu, "asked"}));
    auto const refused = take(ints(25), [] { return 0; });
    EXPECT_EQ(refused.error().code(), errc::out_of_memory);
    EXPECT_THAT(refused.error().message(), HasSubstr("room for 0 of 25 items"));
}

TEST_F(chunk_test, chunks_of_floats_are_not_repeatable_and_determinism_keeps_them_off_the_gpu) {
    one_gpu();
    deterministic_scope const scope;
    std::vector<place> seen;
    auto const run = [&](decision const& how, std::uint64_t, std::uint64_t) {
        return seen.push_back(how.selected), result<void>{};
    };
    auto const half = [](std::uint64_t n) -> result<std::uint64_t> { return n / 2; };
    ASSERT_TRUE(decide_chunks(total, {.items = 5000, .type = scalar::f32}, {half, run}));
    EXPECT_THAT(seen, testing::Each(place::cpu));
    seen.clear();
    ASSERT_TRUE(decide_chunks(total, {.items = 5000, .type = scalar::i32}, {half, run}));
    EXPECT_THAT(seen, testing::Contains(place::gpu)) << "integers do not round";
}

// ---- Precision -----------------------------------------------------------------------------------------------------

constexpr std::array planned{
    variant{.name = "gpu-f32",
            .where = place::gpu,
            .types = types(scalar::f64),
            .needs = "fast",
            .plan = precision_plan{.compute = scalar::f32, .compensation = compensation::error_free_sums}},
    variant{.name = "gpu", .where = place::gpu, .needs = "full"}, variant{.name = "cpu", .where = place::cpu}};
constinit operation const length{"test_length", "tests", {.pairwise = 1000}, planned};

TEST_F(operation_test, a_metric_of_f64_is_computed_in_f32_where_the_device_is_slow_at_f64) {
    one_gpu();
    call_facts const call{.items = 5000, .type = scalar::f64, .purpose = precision_class::metric};
    set_f32_per_f64(64);
    auto const how = decide(length, call).value();
    EXPECT_EQ(how.chosen->name, "gpu-f32");
    EXPECT_EQ(how.precision.storage, scalar::f64);
    EXPECT_EQ(how.precision.compute, scalar::f32);
    EXPECT_EQ(last_of(event_kind::dispatched).detail.view(),
              "auto -> gpu-f32; f64 on host; crossover 1000 default; computes f32, error-free sums");
    set_f32_per_f64(2);
    auto const full = decide(length, call).value();
    EXPECT_EQ(full.chosen->name, "gpu");
    EXPECT_EQ(full.precision, precision_plan{});
}

TEST_F(operation_test, what_no_plan_allows_and_what_no_variant_computes_stays_as_stored) {
    one_gpu();
    set_f32_per_f64(64);
    for (auto const purpose : {precision_class::constructive, precision_class::coarse, precision_class::predicate}) {
        auto const how = decide(length, {.items = 5000, .type = scalar::f64, .purpose = purpose}).value();
        EXPECT_EQ(how.chosen->name, "gpu") << "its variant has no such plan";
        EXPECT_EQ(how.precision.compute, scalar::f64);
    }
    auto const floats =
        decide(length, {.items = 5000, .type = scalar::f32, .purpose = precision_class::metric}).value();
    EXPECT_EQ(floats.chosen->name, "gpu");
    EXPECT_EQ(floats.precision.compute, scalar::f32);
    auto const small = decide(length, {.items = 10, .type = scalar::f64, .purpose = precision_class::metric}).value();
    EXPECT_EQ(small.selected, place::cpu);
    EXPECT_EQ(small.precision.compute, scalar::f64);
}

TEST_F(operation_test, nobody_asks_the_device_about_f64_unless_it_matters) {
    call_facts const call{.items = 10, .type = scalar::f64, .purpose = precision_class::metric};
    ASSERT_TRUE(decide(length, call));
    EXPECT_EQ(probes_, 0) << "a small call on the CPU";
    ASSERT_TRUE(decide(plain, call));
    EXPECT_EQ(probes_, 0);
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
