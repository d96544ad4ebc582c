// SPDX-License-Identifier: Apache-2.0
//
// Tropical products that also count: how many k reach the result. With multiplicities of A and B, which count in how many ways their own
// elements are reached, a chain of products counts shortest paths, optimal assignments, ground states. max_plus and min_plus, f32
// and f64. Counts are 64-bit integers, exact below 2^63 and modulo 2^64 beyond. NaN never wins and is never counted; where there is no
// path (the semiring's zero) the count is 0. The CPU gives the same bits.
//
//     auto const shortest = kiln::tropical::counting<float>(kiln::tropical::semiring::min_plus).value();
//     shortest(stream, {.m = n, .n = n, .k = n}, {a}, {b}, {c, ways}).value();
#pragma once

#include <kiln/tropical/product.hpp>

namespace KILN_PUBLIC kiln {
namespace tropical {

// Counts lie as the values do: same leading dimension, same stride.
template <class T>
struct counted_input {
    T const* data = nullptr;
    std::int64_t const* counts = nullptr;  // null: one each
    std::int64_t ld = 0;
    std::int64_t stride = 0;
    transposed as = transposed::no;
};
template <class T>
struct counted_output {
    T* data = nullptr;
    std::int64_t* counts = nullptr;
    std::int64_t ld = 0;
    std::int64_t stride = 0;
};

struct counting_call {
    product_call values;  // without winners; batches by stride
    std::int64_t const* a_counts = nullptr;
    std::int64_t const* b_counts = nullptr;
    std::int64_t* c_counts = nullptr;
};

class untyped_counting {
public:
    struct state;
    // errc::invalid_argument for other semirings and types. `how.arg` and `how.choice` do not count.
    [[nodiscard]] static result<untyped_counting> make(semiring s, scalar type, product_options const& how = {});
    // Queued on `on`: no synchronisation, allocation or lookup.
    result<void> run(stream_ref on, counting_call const& call) const;

private:
    explicit untyped_counting(std::shared_ptr<state const> s) noexcept : state_{std::move(s)} {}
    std::shared_ptr<state const> state_;
};

namespace cpu {
// On host memory, one thread.
result<void> run(semiring s, scalar type, counting_call const& call);
}  // namespace cpu

namespace detail {
template <class T>
counting_call counting_call_of(tropical::shape const& s, counted_input<T> const& a, counted_input<T> const& b,
                               counted_output<T> const& c, accumulation into) {
    return {.values = call_of(s, input<T>{a.data, a.ld, a.stride, a.as}, input<T>{b.data, b.ld, b.stride, b.as},
                              output<T>{c.data, c.ld, c.stride}, winners{}, into),
            .a_counts = a.counts,
            .b_counts = b.counts,
            .c_counts = c.counts};
}
}  // namespace detail

// T: float or double.
template <class T>
class counting_handle : public untyped_counting {
public:
    explicit counting_handle(untyped_counting untyped) : untyped_counting{std::move(untyped)} {}
    // into_c: C = C (+) A (x) B, counts of equal values added.
    result<void> operator()(stream_ref on, tropical::shape const& s, counted_input<T> const& a,
                            counted_input<T> const& b, counted_output<T> const& c,
                            accumulation into = accumulation::replace) const {
        return run(on, detail::counting_call_of(s, a, b, c, into));
    }
};
template <class T>
[[nodiscard]] result<counting_handle<T>> counting(semiring s, product_options const& how = {}) {
    return untyped_counting::make(s, scalar_of<T>(), how).transform([](untyped_counting&& made) {
        return counting_handle<T>(std::move(made));
    });
}

namespace cpu {
template <class T>
result<void> counting(semiring s, tropical::shape const& size, counted_input<T> const& a, counted_input<T> const& b,
                      counted_output<T> const& c, accumulation into = accumulation::replace) {
    return run(s, scalar_of<T>(), detail::counting_call_of(size, a, b, c, into));
}
}  // namespace cpu

}  // namespace tropical
}  // namespace kiln
