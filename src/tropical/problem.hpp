// SPDX-License-Identifier: Apache-2.0
//
// A call as the kernels take it: C always has neighbours along m. A row-major product is the column-major one of the
// transposes with A and B exchanged; every semiring here is commutative. The structs are those of kernels/tropical.
#pragma once

#include "base/check.hpp"

#include <kiln/tropical/product.hpp>

namespace kiln::tropical {

struct problem {
    void const* a;
    void const* b;
    void* c;
    void* arg;
    std::int64_t lda, ldb, ldc, ldarg;
    std::int64_t stride_a, stride_b, stride_c, stride_arg;
    std::int64_t batch;
    std::int32_t m, n, k;
    std::uint32_t flags;
    std::int32_t no_path;
    std::int32_t one;
    std::uint32_t* signals;  // null where blocks do not share tiles
};
static_assert(sizeof(problem) == 136);

struct gradient {
    void const* g;
    void const* arg;
    void const* a;
    void const* b;
    void* da;
    void* db;
    std::int64_t ldg, ldarg, lda, ldb, ldda, lddb;
    std::int64_t stride_g, stride_arg, stride_a, stride_b, stride_da, stride_db;
    std::int64_t batch;
    std::int32_t m, n, k;
    std::uint32_t flags;
    std::int32_t part;
    std::int32_t unused;
};
static_assert(sizeof(gradient) == 176);

namespace flag {
inline constexpr std::uint32_t a_along_k = 1, b_along_k = 2, accumulate = 4, arg_is_64 = 8, by_pointer = 16;
inline constexpr std::uint32_t da_along_k = 16, db_along_k = 32;  // of a gradient
}  // namespace flag

// Checked, dense dimensions filled in. `with_arg`: whether the handle has winners.
[[nodiscard]] result<problem> problem_of(product_call const& call, with_winners arg);
[[nodiscard]] result<gradient> gradient_of(backward_call const& call, gradient_rule rule);

}  // namespace kiln::tropical
