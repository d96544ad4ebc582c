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

namespace kiln {

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
        auto call = runtime::operation_call::begin(prims::sum_operation, facts);
        if (!call) return std::move(call).error();
        runtime::brought const moved{*call, on, in};
        if (!moved) return moved.why();
        auto out = runtime::room<T>(*call, on, 1, in);
        if (!out) return out;
        if (!call->on_gpu()) {
            *out->data() = cpu::reduce(moved->host_span(), cpu::plus);
            return out;
        }
        auto ran =
            call->how().precision.compute == scalar_of<T>() ? as_stored(on, *moved, *out) : in_floats(on, *moved, *out);
        if (!ran) return std::move(ran).error();
        return out;
    }

private:
    using two_floats = prims::two_floats;

    template <class To>
    [[nodiscard]] result<buffer<To>> terms_of(stream_ref on, buffer<T> const& in, op const& term,
                                              runtime::kept_handle<transform_handle<T, To>> const& kept) const {
        auto handle = kept.get(in.device(), [&](int device) { return transform<T, To>(term, {.device = device}); });
        if (!handle) return std::move(handle).error();
        auto terms = buffer<To>::on_device(on, in.size(), in.device());
        if (!terms) return terms;
        auto ran = (**handle)(on, {in.data(), in.size()}, {terms->data(), terms->size()});
        if (!ran) return std::move(ran).error();
        return terms;
    }

    [[nodiscard]] result<void> as_stored(stream_ref on, buffer<T> const& in, buffer<T>& out) const {
        auto terms = term_ ? terms_of<T>(on, in, *term_, term_handle_) : result<buffer<T>>{in};
        if (!terms) return std::move(terms).error();
        auto handle = sum_.get(in.device(), [](int device) { return kiln::reduce<T>(plus, {.device = device}); });
        if (!handle) return std::move(handle).error();
        return (**handle)(on, {terms->data(), terms->size()}, out.data());
    }

    [[nodiscard]] result<void> in_floats(stream_ref on, buffer<T> const& in, buffer<T>& out) const {
        auto const terms = terms_of<two_floats>(on, in, prims::in_floats(*term_), float_term_);
        if (!terms) return terms.error();
        auto const total = buffer<two_floats>::on_device(on, 1, in.device());
        if (!total) return total.error();
        auto handle = float_sum_.get(in.device(), [](int device) {
            return kiln::reduce<two_floats>(prims::sum_of_two_floats(), {.device = device});
        });
        if (!handle) return std::move(handle).error();
        if (auto ran = (**handle)(on, {terms->data(), terms->size()}, total->data()); !ran) return ran;
        auto widen = widen_.get(in.device(), [](int device) {
            return transform<two_floats, T>(op{"kiln_mapped(a.high) + kiln_mapped(a.low)"}, {.device = device});
        });
        if (!widen) return std::move(widen).error();
        return (**widen)(on, {total->data(), 1}, {out.data(), 1});
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
