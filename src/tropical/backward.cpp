// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_state.hpp"
#include "engine/pack_verbs.hpp"
#include "tropical/units.hpp"

namespace kiln::tropical {

namespace {

// As in kernels/tropical/backward.cu.
constexpr int lines = 8;
constexpr std::size_t piece_bytes(std::size_t element) { return 32 * (32 / element) * (lines + 1) * 2 * element; }

}  // namespace

struct untyped_backward::state {
    gradient_rule rule;
    std::size_t element_bytes;
    untyped_kernel kernel;
    std::size_t shared_limit;  // dynamic
};

result<untyped_backward> untyped_backward::make(gradient_rule rule, scalar type, product_options const& how) {
    if (type != scalar::f32 && type != scalar::f64)
        return fail(errc::invalid_argument, "tropical: gradients are f32 or f64, not {}", kiln::name_of(type));
    auto& with = how.engine != nullptr ? *how.engine : engine::process();
    KILN_TRY(auto const loaded, engine_detail::shipped_or_made(with, backward_unit(rule, type), how.device, how.wait));
    KILN_TRY(auto kernel, loaded.kernel("backward"));
    // As much as the device gives: rows of dA stay whole.
    std::size_t limit = 48U << 10;
    for (std::size_t const kib : {220, 160, 96, 64}) {
        if (!kernel.allow_shared(kib << 10)) continue;
        limit = kib << 10;
        break;
    }
    return untyped_backward{std::make_shared<state const>(
        state{rule, type == scalar::f32 ? std::size_t{4} : std::size_t{8}, std::move(kernel), limit})};
}

result<void> untyped_backward::run(stream_ref on, backward_call const& call) const {
    auto const& s = *state_;
    KILN_TRY(auto p, gradient_of(call, s.rule));
    if (p.k == 0 || p.batch == 0 || (p.m == 0 && p.n == 0)) return {};
    auto const piece = piece_bytes(s.element_bytes);
    auto const fits = static_cast<std::int64_t>((s.shared_limit - piece) / (lines * s.element_bytes));
    p.part = static_cast<std::int32_t>(std::min<std::int64_t>(p.k, fits));
    auto const parts = (p.k + std::int64_t{p.part} - 1) / p.part;
    auto const groups = (p.m + std::int64_t{lines} - 1) / lines + (p.n + std::int64_t{lines} - 1) / lines;
    auto const blocks = std::min<std::int64_t>(groups * parts * p.batch, std::numeric_limits<std::int32_t>::max());
    void* arguments[] = {&p};
    return s.kernel.launch(on,
                           {{static_cast<unsigned>(blocks)},
                            {lines * 32},
                            static_cast<unsigned>(static_cast<std::size_t>(p.part) * lines * s.element_bytes + piece)},
                           arguments);
}

}  // namespace kiln::tropical
