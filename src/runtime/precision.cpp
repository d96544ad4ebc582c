// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/precision.hpp>

#include "cuda/context.hpp"

namespace kiln {

namespace {
constexpr int worth_it = 8;  // below this ratio, f32 with its compensation and refinement is not faster than f64
}  // namespace

precision_plan plan_precision(precision_class what_for, scalar storage, int f32_per_f64) noexcept {
    precision_plan out{.storage = storage, .compute = storage};
    if (storage != scalar::f64 || f32_per_f64 < worth_it || what_for == precision_class::constructive) return out;
    out.compute = scalar::f32;
    if (what_for == precision_class::metric) out.compensation = compensation::error_free_sums;
    if (what_for == precision_class::predicate) out.refinement = refinement::doubtful;
    return out;
}

result<int> f32_per_f64(int device) {
    KILN_TRY(auto const where, cuda::context::of(device));
    int ratio = 0;
    KILN_CHECK(cuda::call<&cuda::driver_api::device_get_attribute>(
        where->api(), &ratio, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO,
        static_cast<CUdevice>(where->device())));
    return ratio;
}

}  // namespace kiln
