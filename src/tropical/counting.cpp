// SPDX-License-Identifier: Apache-2.0
#include <kiln/tropical/counting.hpp>

#include "engine/engine_state.hpp"
#include "engine/pack_verbs.hpp"
#include "tropical/cpu_semiring.hpp"
#include "tropical/problem.hpp"
#include "tropical/units.hpp"

namespace kiln::tropical {

namespace {

// As in kernels/tropical/counting.cu.
struct counting_problem {
    problem values;
    std::int64_t const* a_counts;
    std::int64_t const* b_counts;
    std::int64_t* c_counts;
};
static_assert(sizeof(counting_problem) == 160);
constexpr std::int64_t side = 64, side_of_plain_f32 = 128;
constexpr unsigned threads = 256;
constexpr int most_exact = 1 << 24;

result<void> check(semiring s, scalar type) {
    if (s != semiring::max_plus && s != semiring::min_plus)
        return fail(errc::invalid_argument, "tropical: counting is for maxplus and minplus, not {}", name_of(s));
    if (type != scalar::f32 && type != scalar::f64)
        return fail(errc::invalid_argument, "tropical: counting is for f32 and f64, not {}", kiln::name_of(type));
    return {};
}

result<counting_problem> problem_of(counting_call const& c) {
    if (c.values.batch == batch_form::by_pointer)
        return fail(errc::invalid_argument, "tropical: counting takes batches by stride, not by pointer");
    KILN_TRY(auto const values, problem_of(c.values, with_winners::no));
    if (c.c_counts == nullptr && values.m > 0 && values.n > 0 && values.batch > 0)
        return fail(errc::invalid_argument, "tropical: the output for counts is null");
    // Row-major products are of the transposes, with A and B exchanged.
    bool const exchanged = c.values.shape.layout == order::row_major;
    return counting_problem{values, exchanged ? c.b_counts : c.a_counts, exchanged ? c.a_counts : c.b_counts,
                            c.c_counts};
}

template <semiring S, class T>
void run_on_host(counting_problem const& all) {
    using ring = host_semiring<S, T>;
    auto const& p = all.values;
    bool const a_k = (p.flags & flag::a_along_k) != 0, b_k = (p.flags & flag::b_along_k) != 0;
    bool const adds = (p.flags & flag::accumulate) != 0;
    auto const wrapped = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
    for (std::int64_t w = 0; w < p.batch; ++w) {
        for (std::int64_t n = 0; n < p.n; ++n) {
            for (std::int64_t m = 0; m < p.m; ++m) {
                T best = ring::zero();
                std::uint64_t ways = 0;
                for (std::int64_t k = 0; k < p.k; ++k) {
                    auto const at_a = w * p.stride_a + (a_k ? m * p.lda + k : k * p.lda + m);
                    auto const at_b = w * p.stride_b + (b_k ? n * p.ldb + k : k * p.ldb + n);
                    T const next = static_cast<T const*>(p.a)[at_a] + static_cast<T const*>(p.b)[at_b];
                    if (!ring::beats(next, best) && next != best) continue;
                    auto const here = (all.a_counts == nullptr ? 1 : wrapped(all.a_counts[at_a])) *
                                      (all.b_counts == nullptr ? 1 : wrapped(all.b_counts[at_b]));
                    ways = next == best ? ways + here : here;
                    best = next;
                }
                if (!ring::beats(best, ring::zero())) ways = 0;
                auto const at = w * p.stride_c + n * p.ldc + m;
                T& c = static_cast<T*>(p.c)[at];
                if (adds) {
                    T const old = ring::normal(c);
                    if (old == best) ways += wrapped(all.c_counts[at]);
                    else if (old == old && !ring::beats(best, old)) best = old, ways = wrapped(all.c_counts[at]);
                }
                c = ring::normal(best);
                all.c_counts[at] = static_cast<std::int64_t>(ways);
            }
        }
    }
}

}  // namespace

struct untyped_counting::state {
    untyped_kernel plain;
    untyped_kernel weighted;
    std::int64_t side_of_plain;
};

result<untyped_counting> untyped_counting::make(semiring s, scalar type, product_options const& how) {
    KILN_CHECK(check(s, type));
    auto& with = how.engine != nullptr ? *how.engine : engine::process();
    KILN_TRY(auto const loaded, engine_detail::shipped_or_made(with, counting_unit(s, type), how.device, how.wait));
    KILN_TRY(auto plain, loaded.kernel("product_counting"));
    KILN_TRY(auto weighted, loaded.kernel("product_counting_weighted"));
    return untyped_counting{std::make_shared<state const>(
        state{std::move(plain), std::move(weighted), type == scalar::f32 ? side_of_plain_f32 : side})};
}

result<void> untyped_counting::run(stream_ref on, counting_call const& call) const {
    KILN_TRY(auto p, problem_of(call));
    auto const& v = p.values;
    if (v.m == 0 || v.n == 0 || v.batch == 0) return {};
    // Without multiplicities the kernel counts in floats. They are exact as far as this, and the other kernel takes ones.
    bool const is_weighted = p.a_counts != nullptr || p.b_counts != nullptr || v.k > most_exact;
    auto const tile = is_weighted ? side : state_->side_of_plain;
    auto const tiles = (v.m + tile - 1) / tile * ((v.n + tile - 1) / tile) * v.batch;
    auto const blocks = static_cast<unsigned>(std::min<std::int64_t>(tiles, std::numeric_limits<std::int32_t>::max()));
    void* arguments[] = {&p};
    return (is_weighted ? state_->weighted : state_->plain).launch(on, {{blocks}, {threads}}, arguments);
}

result<void> cpu::run(semiring s, scalar type, counting_call const& call) {
    KILN_CHECK(check(s, type));
    KILN_TRY(auto const p, problem_of(call));
    bool const most = s == semiring::max_plus;
    if (type == scalar::f32)
        (most ? run_on_host<semiring::max_plus, float> : run_on_host<semiring::min_plus, float>)(p);
    else (most ? run_on_host<semiring::max_plus, double> : run_on_host<semiring::min_plus, double>)(p);
    return {};
}

}  // namespace kiln::tropical
