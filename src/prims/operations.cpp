// SPDX-License-Identifier: Apache-2.0
#include <kiln/prims/run.hpp>

#include "base/check.hpp"

namespace kiln::prims {

namespace {

// reduce over two_floats with sum_of_two_floats: a test holds the name to the text.
constexpr std::string_view two_floats_spec = "reduce_op53f30cfc_recordb228bfc5";

constexpr type_set numbers{(1U << static_cast<unsigned>(scalar::record)) - 1};

constexpr std::array<variant, 2> both(std::string_view needs, type_set varying = {}) {
    return {variant{.name = "gpu", .where = place::gpu, .needs = needs, .varying = varying},
            variant{.name = "cpu", .where = place::cpu, .types = numbers}};
}

// A scan looks back over neighbours in whatever order they finish, so float sums may round differently; reductions and
// segmented ones have a fixed shape for a size and device.
constexpr auto exclusive_scan_variants = both("exclusive_scan_{type}", float_types);
constexpr auto inclusive_scan_variants = both("inclusive_scan_{type}", float_types);
constexpr auto reduce_variants = both("reduce_sum_{type}");
// The first that fits is taken: the one in f32 only where the plan is just this.
constexpr precision_plan sums_in_floats{.compute = scalar::f32, .compensation = compensation::error_free_sums};
constexpr std::array<variant, 3> sum_variants{
    variant{.name = "gpu-f32",
            .where = place::gpu,
            .types = types(scalar::f64),
            .needs = two_floats_spec,
            .plan = sums_in_floats},
    variant{.name = "gpu", .where = place::gpu, .types = types(scalar::f32, scalar::f64), .needs = "reduce_sum_{type}"},
    variant{.name = "cpu", .where = place::cpu, .types = types(scalar::f32, scalar::f64)}};
constexpr auto segmented_reduce_variants = both("segmented_reduce_sum_{type}");
constexpr auto select_variants = both("select_{type}");
constexpr auto lower_bound_variants = both("lower_bound_{type}");
constexpr auto upper_bound_variants = both("upper_bound_{type}");
constexpr std::array<variant, 2> radix_sort_variants{
    variant{.name = "gpu", .where = place::gpu, .types = numbers, .needs = "radix_sort_{type}"},
    variant{.name = "cpu", .where = place::cpu, .types = numbers}};
constexpr auto merge_sort_variants = both("merge_sort_{type}");
constexpr auto unique_by_key_variants = both("unique_by_key_{type}_i32");

}  // namespace

// Crossovers until `kiln calibrate` has measured them: one core against a transfer at 10 GB/s and a launch.
constinit operation const exclusive_scan_operation{
    "exclusive_scan", "prims", {.pairwise = 1 << 16}, exclusive_scan_variants};
constinit operation const inclusive_scan_operation{
    "inclusive_scan", "prims", {.pairwise = 1 << 16}, inclusive_scan_variants};
constinit operation const reduce_operation{"reduce", "prims", {.pairwise = 1 << 17}, reduce_variants};
constinit operation const sum_operation{"sum", "prims", {.pairwise = 1 << 17}, sum_variants};
constinit operation const segmented_reduce_operation{
    "segmented_reduce", "prims", {.pairwise = 1 << 17}, segmented_reduce_variants};
constinit operation const select_operation{"select", "prims", {.pairwise = 1 << 16}, select_variants};
constinit operation const lower_bound_operation{"lower_bound", "prims", {.pairwise = 1 << 14}, lower_bound_variants};
constinit operation const upper_bound_operation{"upper_bound", "prims", {.pairwise = 1 << 14}, upper_bound_variants};
constinit operation const radix_sort_operation{"radix_sort", "prims", {.pairwise = 1 << 13}, radix_sort_variants};
constinit operation const merge_sort_operation{"merge_sort", "prims", {.pairwise = 1 << 13}, merge_sort_variants};
constinit operation const unique_by_key_operation{
    "unique_by_key", "prims", {.pairwise = 1 << 16}, unique_by_key_variants};

std::span<operation const* const> operations() noexcept {
    static constexpr operation const* all[] = {
        &exclusive_scan_operation,   &inclusive_scan_operation, &reduce_operation,       &sum_operation,
        &segmented_reduce_operation, &select_operation,         &lower_bound_operation,  &upper_bound_operation,
        &radix_sort_operation,       &merge_sort_operation,     &unique_by_key_operation};
    return all;
}

error no_cpu_operator(op const& by) {
    return fail(errc::unsupported, "the CPU has no operator '{}' for this type; use a built-in one, or run on the GPU",
                by.kind() == op::form::builtin ? by.name() : "of CUDA C++ text");
}

}  // namespace kiln::prims
