// SPDX-License-Identifier: Apache-2.0
//
// The sum of a term over the data: of the elements `a` themselves, or of an expression of them. Where the device is slow at
// f64 and the sum is a metric, the term of f64 data is computed in f32 and summed without losing a bit of it: a relative
// error of about 1e-7 per term that does not grow with their number. The decision names it. A bare sum waits for memory and
// not for arithmetic, so it is always computed as stored; so are terms with functions or captured values.
//
//     kiln::run::sum<double> const energy{kiln::op{"expf(-a * a)"}, kiln::precision_class::metric};
#pragma once

#include <kiln/prims/run.hpp>

namespace KILN_PUBLIC kiln {

namespace prims {
struct two_floats;
}
template <>
struct device_type<prims::two_floats> {
    static constexpr std::string_view name = "two_floats", definition = "struct two_floats { float high, low; };";
};

namespace prims {

// A number as an unevaluated sum of two: what f32 arithmetic keeps of a sum without loss.
struct two_floats {
    float high = 0, low = 0;
};
[[nodiscard]] op sum_of_two_floats();
// An expression of an f64 `a`, computed in f32; and whether it can be.
[[nodiscard]] op in_floats(op const& term);
[[nodiscard]] bool can_narrow(op const& term) noexcept;

}  // namespace prims

namespace run {

template <class T>
class sum {
    static_assert(std::is_floating_point_v<T>);

public:
    sum() = default;
    explicit sum(op term, precision_class what_for = precision_class::constructive)
        : term_{std::move(term)}, purpose_{what_for} {}

    [[nodiscard]] result<buffer<T>> operator()(stream_ref on, buffer<T> const& in) const {
        auto facts = prims::facts_of(in, term_ ? &*term_ : nullptr);
        if (term_ && prims::can_narrow(*term_)) facts.purpose = purpose_;
        return runtime::filled<T>(
            runtime::operation_call::begin(prims::sum_operation, facts), on, 1, in,
            [&](auto const& call, buffer<T> const& here, buffer<T>& out) { return go(call, on, here, out); });
    }

private:
    using two_floats = prims::two_floats;

    [[nodiscard]] result<void> go(runtime::operation_call const& call, stream_ref on, buffer<T> const& in,
                                  buffer<T>& out) const {
        if (!call.on_gpu()) return *out.data() = cpu::reduce(in.host_span(), cpu::plus), result<void>{};
        return call.how().precision.compute == scalar_of<T>() ? as_stored(on, in, out) : in_floats(on, in, out);
    }

    // `by` gives the operator, once per device.
    template <class From, class To, class By>
    [[nodiscard]] static result<void> map(stream_ref on, buffer<From> const& in, buffer<To> const& out, By const& by,
                                          runtime::kept_handle<transform_handle<From, To>> const& kept) {
        return kept.with(
            in.device(), [&](int device) { return transform<From, To>(by(), prims::options_on(device)); },
            [&](auto const& each) { return each(on, runtime::span_of(in), runtime::span_of(out)); });
    }
    template <class To, class By>
    [[nodiscard]] static result<void> add_up(stream_ref on, buffer<To> const& in, buffer<To> const& out, By const& by,
                                             runtime::kept_handle<reduce_handle<To>> const& kept) {
        return kept.with(
            in.device(), [&](int device) { return kiln::reduce<To>(by(), prims::options_on(device)); },
            [&](auto const& all) { return all(on, runtime::span_of(in), out.data()); });
    }

    [[nodiscard]] result<void> as_stored(stream_ref on, buffer<T> const& in, buffer<T> const& out) const {
        auto const sum_of = [&](buffer<T> const& terms) {
            return add_up(
                on, terms, out, [] { return op(plus); }, sum_);
        };
        if (!term_) return sum_of(in);
        auto const terms = buffer<T>::on_device(on, in.size(), in.device());
        if (!terms) return terms.error();
        return map(
                   on, in, *terms, [&] { return *term_; }, term_handle_)
            .and_then([&] { return sum_of(*terms); });
    }
    [[nodiscard]] result<void> in_floats(stream_ref on, buffer<T> const& in, buffer<T> const& out) const {
        auto const terms = buffer<two_floats>::on_device(on, in.size(), in.device());
        if (!terms) return terms.error();
        auto const total = buffer<two_floats>::on_device(on, 1, in.device());
        if (!total) return total.error();
        return map(
                   on, in, *terms, [&] { return prims::in_floats(*term_); }, float_term_)
            .and_then([&] { return add_up(on, *terms, *total, prims::sum_of_two_floats, float_sum_); })
            .and_then([&] {
                return map(
                    on, *total, out, [] { return op{"kiln_mapped(a.high) + kiln_mapped(a.low)"}; }, widen_);
            });
    }

    std::optional<op> term_;
    precision_class purpose_ = precision_class::constructive;
    runtime::kept_handle<reduce_handle<T>> sum_;
    runtime::kept_handle<transform_handle<T, T>> term_handle_;
    runtime::kept_handle<transform_handle<T, two_floats>> float_term_;
    runtime::kept_handle<reduce_handle<two_floats>> float_sum_;
    runtime::kept_handle<transform_handle<two_floats, T>> widen_;
};

}  // namespace run

}  // namespace kiln
