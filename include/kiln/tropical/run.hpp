// SPDX-License-Identifier: Apache-2.0
//
// Tropical products as an operation over buffers: decided once, run on the CPU or the GPU, told by an event. The size that
// counts for the crossover is the number of steps, m n k. Dense matrices; <kiln/tropical/product.hpp> has every other form.
//
//     kiln::run::tropical_product<float> const shorter{kiln::tropical::semiring::min_plus};
//     auto d2 = shorter(stream, {.m = n, .n = n, .k = n}, d, d).value().c;
#pragma once

#include <kiln/runtime/pack_call.hpp>
#include <kiln/tropical/product.hpp>

namespace KILN_PUBLIC kiln {

namespace tropical {
extern operation const product_operation;
// errc::invalid_argument where a and b are in different places or too small.
[[nodiscard]] result<call_facts> facts_of(tropical::shape const& s, scalar type, storage const& a, storage const& b,
                                          std::size_t size);
}  // namespace tropical

namespace run {

template <class T>
class tropical_product {
public:
    explicit tropical_product(tropical::semiring over, tropical::with_winners arg = tropical::with_winners::no)
        : over_{over}, arg_{arg} {}

    struct matrices {
        buffer<T> c;
        std::optional<buffer<std::int32_t>> winners;  // of a product with winners
    };
    [[nodiscard]] result<matrices> operator()(stream_ref on, tropical::shape const& s, buffer<T> const& a,
                                              buffer<T> const& b) const {
        auto const facts = tropical::facts_of(s, scalar_of<T>(), a.raw(), b.raw(), sizeof(T));
        if (!facts) return facts.error();
        std::optional<buffer<std::int32_t>> via;
        auto const cells = static_cast<std::size_t>(s.m * s.n * s.batch);
        auto const fill = [&](auto const& call, buffer<T> const& left, buffer<T>& c) -> result<void> {
            runtime::brought const right{call, on, b};
            if (!right) return right.why();
            tropical::winners which;
            if (arg_ == tropical::with_winners::yes) {
                auto made = runtime::room<std::int32_t>(call, on, cells, a);
                if (!made) return std::move(made).error();
                which.data = via.emplace(*std::move(made)).data();
            }
            return go(call, on, s, left, *right, c, which);
        };
        return runtime::filled<T>(runtime::operation_call::begin(tropical::product_operation, *facts), on, cells, a,
                                  fill)
            .transform([&](buffer<T>&& c) {
                return matrices{std::move(c), std::move(via)};
            });
    }

private:
    [[nodiscard]] result<void> go(runtime::operation_call const& call, stream_ref on, tropical::shape const& s,
                                  buffer<T> const& a, buffer<T> const& b, buffer<T>& c,
                                  tropical::winners const& which) const {
        if (!call.on_gpu()) return tropical::cpu::product<T>(over_, s, {a.data()}, {b.data()}, {c.data()}, which);
        tropical::product_options how;
        how.arg = arg_;
        return handle_.with(
            a.device(),
            [&](int device) {
                how.device = device;
                return tropical::product<T>(over_, how);
            },
            [&](auto const& multiply) {
                typename std::remove_cvref_t<decltype(multiply)>::extras more;
                more.arg = which;
                return multiply(on, s, {a.data()}, {b.data()}, {c.data()}, more);
            });
    }

    tropical::semiring over_;
    tropical::with_winners arg_;
    runtime::kept_handle<tropical::product_handle<T>> handle_;
};

}  // namespace run

}  // namespace kiln
