// SPDX-License-Identifier: Apache-2.0
//
// In what precision an operation computes. Data is stored as it is, f64 as f64; a plan says what an operation may compute
// in on a device, given what its result is for. Where the device has f64 at a good rate there is nothing to gain and the
// plan is f64. Plain values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/scalar.hpp>

namespace KILN_PUBLIC kiln {

enum class precision_class : std::uint8_t {
    coarse,        // bounds and filters: may be too generous, never too tight
    metric,        // lengths, areas, distances: a relative error the caller knows
    predicate,     // yes or no: must be right
    constructive,  // coordinates that become data: must not degrade it
};
enum class compensation : std::uint8_t { none, error_free_sums };
enum class refinement : std::uint8_t {
    none,
    doubtful,  // what is within the error of the fast answer is computed again in f64
};

struct precision_plan {
    scalar storage = scalar::f64;
    scalar compute = scalar::f64;
    kiln::compensation compensation = compensation::none;
    kiln::refinement refinement = refinement::none;
    bool operator==(precision_plan const&) const = default;
};

// `f32_per_f64`: how many f32 operations the device does in the time of one of f64; 2 on data-centre GPUs, 32 or 64 on
// others. `storage` is f32 or f64.
[[nodiscard]] precision_plan plan_precision(precision_class what_for, scalar storage, int f32_per_f64) noexcept;

// Of a device, from its driver.
[[nodiscard]] result<int> f32_per_f64(int device = 0);

}  // namespace kiln
