// SPDX-License-Identifier: Apache-2.0
#include <kiln/tropical/run.hpp>

#include "base/check.hpp"

namespace kiln::tropical {

namespace {

constexpr type_set product_types = types(scalar::f32, scalar::f64, scalar::i32, scalar::i64);
constexpr std::array product_variants{
    variant{.name = "gpu",
            .where = place::gpu,
            .types = product_types,
            .needs = "tropical_maxplus_{type}_nn tropical_minplus_{type}_nn tropical_maxmul_{type}_nn"},
    variant{.name = "cpu", .where = place::cpu, .types = product_types}};

}  // namespace

// 64 x 64 x 64 steps: what one core does in the time of a transfer and a launch.
constinit operation const product_operation{"tropical_product", "tropical", {.pairwise = 1 << 18}, product_variants};

result<call_facts> facts_of(tropical::shape const& s, scalar type, storage const& a, storage const& b,
                            std::size_t size) {
    if (s.m < 0 || s.n < 0 || s.k < 0 || s.batch < 0)
        return fail(errc::invalid_argument, "tropical_product: m {}, n {}, k {}, batch {}: none may be negative", s.m,
                    s.n, s.k, s.batch);
    auto const bytes = [&](std::int64_t rows, std::int64_t columns) {
        return static_cast<std::size_t>(rows * columns * s.batch) * size;
    };
    if (a.bytes() < bytes(s.m, s.k)) return runtime::too_small("a", a.bytes() / size, bytes(s.m, s.k) / size);
    if (b.bytes() < bytes(s.k, s.n)) return runtime::too_small("b", b.bytes() / size, bytes(s.k, s.n) / size);
    if (on_device(a.where()) != on_device(b.where())) {
        return fail(errc::invalid_argument,
                    "tropical_product: one operand is on the host and one on the device; move one of them by name");
    }
    return call_facts{.items = static_cast<std::uint64_t>(s.m * s.n * s.k * s.batch), .type = type, .where = a.where()};
}

}  // namespace kiln::tropical
