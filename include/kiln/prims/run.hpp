// SPDX-License-Identifier: Apache-2.0
//
// The primitives as operations: the same algorithms over buffers, run on the CPU or the GPU as <kiln/runtime/operation.hpp> decides,
// each call once and visibly. Results live where the operation ran; nothing is brought back unasked. An operation object is
// made where it is used, costs nothing until called, keeps its kernel handle once it has one, and may be shared by
// threads. into() writes to a buffer of the caller's in the same place and allocates nothing.
//
//     kiln::run::exclusive_scan<int> const scan{kiln::plus};
//     auto sums = scan(stream, values).value();       // values: kiln::buffer<int>, anywhere
#pragma once

#include <kiln/prims/cpu.hpp>
#include <kiln/prims/handles.hpp>
#include <kiln/runtime/buffer.hpp>
#include <kiln/runtime/pack_call.hpp>

namespace kiln {

namespace prims {

// All of them, for tools and tests.
[[nodiscard]] std::span<operation const* const> operations() noexcept;
extern operation const exclusive_scan_operation, inclusive_scan_operation, reduce_operation, sum_operation,
    segmented_reduce_operation, select_operation, lower_bound_operation, upper_bound_operation, radix_sort_operation,
    merge_sort_operation, unique_by_key_operation;

[[nodiscard]] error no_cpu_operator(op const& by);

// Calls `run` with the CPU's version of a built-in operator.
template <class T, class Run>
[[nodiscard]] result<void> with_cpu_operator(op const& by, Run const& run) {
    auto const is = [&](std::string_view name) { return by.kind() == op::form::builtin && by.name() == name; };
    if constexpr (scalar_of<T>() != scalar::record) {
        if (is("plus")) return run(cpu::plus), result<void>{};
        if (is("multiply")) return run(cpu::multiply), result<void>{};
        if (is("min")) return run(cpu::min), result<void>{};
        if (is("max")) return run(cpu::max), result<void>{};
        if constexpr (std::is_integral_v<T>) {
            if (is("bit_and")) return run(cpu::bit_and), result<void>{};
            if (is("bit_or")) return run(cpu::bit_or), result<void>{};
            if (is("bit_xor")) return run(cpu::bit_xor), result<void>{};
        }
    }
    return no_cpu_operator(by);
}
template <class T, class Run>
[[nodiscard]] result<void> with_cpu_relation(op const& by, Run const& run) {
    auto const is = [&](std::string_view name) { return by.kind() == op::form::builtin && by.name() == name; };
    if constexpr (scalar_of<T>() != scalar::record) {
        if (is("less")) return run(cpu::less), result<void>{};
        if (is("greater")) return run(cpu::greater), result<void>{};
        if (is("equal")) return run(cpu::equal), result<void>{};
    }
    return no_cpu_operator(by);
}

template <class T>
[[nodiscard]] call_facts facts_of(buffer<T> const& in, op const* by) noexcept {
    bool const everywhere = by == nullptr || by->kind() == op::form::builtin;
    return {.items = in.size(),
            .type = scalar_of<T>(),
            .where = in.where(),
            .text = everywhere ? operator_text::everywhere : operator_text::device_only};
}
}  // namespace prims

namespace run {

// ---- Scan ----------------------------------------------------------------------------------------------------------

template <class T>
class scan {
public:
    [[nodiscard]] result<buffer<T>> operator()(stream_ref on, buffer<T> const& in) const {
        auto call = runtime::operation_call::begin(what_, prims::facts_of(in, &by_));
        if (!call) return std::move(call).error();
        runtime::brought const moved{*call, on, in};
        if (!moved) return moved.why();
        auto out = runtime::room<T>(*call, on, in.size(), in);
        if (!out) return out;
        if (auto ran = go(*call, on, *moved, *out); !ran) return std::move(ran).error();
        return out;
    }
    // `out` may be `in`.
    [[nodiscard]] result<void> into(stream_ref on, buffer<T> const& in, buffer<T>& out) const {
        auto call = runtime::operation_call::begin(what_, prims::facts_of(in, &by_));
        if (!call) return std::move(call).error();
        if (auto fits = runtime::check_output(*call, what_, out, in.size()); !fits) return fits;
        runtime::brought const moved{*call, on, in};
        if (!moved) return moved.why();
        return go(*call, on, *moved, out);
    }

protected:
    scan(operation const& what, prims::scan_form form, op by, T init)
        : what_{what}, form_{form}, by_{std::move(by)}, init_{init} {}

private:
    [[nodiscard]] result<void> go(runtime::operation_call const& call, stream_ref on, buffer<T> const& in,
                                  buffer<T>& out) const {
        if (call.on_gpu()) {
            auto handle = handle_.get(in.device(), [&](int device) {
                return form_ == prims::scan_form::exclusive ? kiln::exclusive_scan<T>(by_, {.device = device})
                                                            : kiln::inclusive_scan<T>(by_, {.device = device});
            });
            if (!handle) return std::move(handle).error();
            return (**handle)(on, {in.data(), in.size()}, {out.data(), in.size()}, {.init = init_});
        }
        return prims::with_cpu_operator<T>(by_, [&](auto f) {
            if (form_ == prims::scan_form::exclusive) cpu::exclusive_scan(in.host_span(), out.host_span(), f, init_);
            else cpu::inclusive_scan(in.host_span(), out.host_span(), f);
        });
    }

    operation const& what_;
    prims::scan_form form_;
    op by_;
    T init_;
    runtime::kept_handle<scan_handle<T>> handle_;
};

template <class T>
class exclusive_scan : public scan<T> {
public:
    explicit exclusive_scan(op by, T init = T{})
        : scan<T>{prims::exclusive_scan_operation, prims::scan_form::exclusive, std::move(by), init} {}
};
template <class T>
class inclusive_scan : public scan<T> {
public:
    explicit inclusive_scan(op by)
        : scan<T>{prims::inclusive_scan_operation, prims::scan_form::inclusive, std::move(by), T{}} {}
};

// ---- Reduce --------------------------------------------------------------------------------------------------------

// A buffer of one element, where the call ran. Host data that the device has no room for is reduced chunk by chunk, each
// decided anew (decide_chunks in <kiln/runtime/operation.hpp>), with one fence per chunk on the GPU; the result is on the host then.
template <class T>
class reduce {
public:
    explicit reduce(op by, T init = T{}) : by_{std::move(by)}, init_{init} {}

    [[nodiscard]] result<buffer<T>> operator()(stream_ref on, buffer<T> const& in) const {
        auto const facts = prims::facts_of(in, &by_);
        if (!on_device(in.where())) return in_chunks(on, in, facts);
        auto call = runtime::operation_call::begin(prims::reduce_operation, facts);
        if (!call) return std::move(call).error();
        return go(*call, on, in, init_);
    }

private:
    [[nodiscard]] result<buffer<T>> in_chunks(stream_ref on, buffer<T> const& in, call_facts const& facts) const {
        std::optional<buffer<T>> whole;
        T so_far = init_;
        auto const run = [&](decision const& how, std::uint64_t first, std::uint64_t count) -> result<void> {
            runtime::operation_call const call{prims::reduce_operation, in.where(), how};
            auto out = go(call, on, in.part(first, count), so_far);
            if (!out) return std::move(out).error();
            if (count == in.size()) return whole.emplace(*std::move(out)), result<void>{};
            auto value = runtime::value_of_sync(on, *out);
            if (!value) return std::move(value).error();
            so_far = *value;
            return {};
        };
        auto const room = [&](std::uint64_t n) { return runtime::room_for(n, sizeof(T), in.device()); };
        // By reference: off the heap.
        if (auto ran = decide_chunks(prims::reduce_operation, facts, {std::ref(room), std::ref(run)}); !ran)
            return std::move(ran).error();
        if (whole) return *std::move(whole);
        return buffer<T>::copy_of(std::span<T const>{&so_far, 1});
    }

    [[nodiscard]] result<buffer<T>> go(runtime::operation_call const& call, stream_ref on, buffer<T> const& in,
                                       T const& init) const {
        runtime::brought const moved{call, on, in};
        if (!moved) return moved.why();
        auto out = runtime::room<T>(call, on, 1, in);
        if (!out) return out;
        if (!call.on_gpu()) {
            auto ran = prims::with_cpu_operator<T>(
                by_, [&](auto f) { *out->data() = cpu::reduce(moved->host_span(), f, init); });
            if (!ran) return std::move(ran).error();
            return out;
        }
        auto handle =
            handle_.get(moved->device(), [&](int device) { return kiln::reduce<T>(by_, {.device = device}); });
        if (!handle) return std::move(handle).error();
        auto ran = (**handle)(on, {moved->data(), moved->size()}, out->data(), {.init = init});
        if (!ran) return std::move(ran).error();
        return out;
    }

    op by_;
    T init_;
    runtime::kept_handle<reduce_handle<T>> handle_;
};

// Of every row of a column of lists: a null row gives a null, an empty one gives init.
template <class T>
class segmented_reduce {
public:
    explicit segmented_reduce(op by, T init = T{}) : by_{std::move(by)}, init_{init} {}

    [[nodiscard]] result<column<T>> operator()(stream_ref on, column<T> const& in) const {
        if (!in.offsets()) return error{errc::invalid_argument, "segmented_reduce: the column has no offsets"};
        auto call =
            runtime::operation_call::begin(prims::segmented_reduce_operation, prims::facts_of(in.values(), &by_));
        if (!call) return std::move(call).error();
        auto moved = call->on_gpu() ? in.to_device(on, in.values().device()) : result<column<T>>{in};
        if (!moved) return std::move(moved).error();
        auto out = runtime::room<T>(*call, on, in.rows(), in.values());
        if (!out) return std::move(out).error();
        if (auto ran = go(*call, on, *moved, *out); !ran) return std::move(ran).error();
        if (moved->validity()) return column<T>{*std::move(out), *moved->validity()};
        return column<T>{*std::move(out)};
    }

private:
    [[nodiscard]] result<void> go(runtime::operation_call const& call, stream_ref on, column<T> const& in,
                                  buffer<T>& out) const {
        auto const& offsets = *in.offsets();
        if (!call.on_gpu()) {
            return prims::with_cpu_operator<T>(by_, [&](auto f) {
                cpu::segmented_reduce(in.values().host_span(), offsets.host_span(), out.host_span(), f, init_);
            });
        }
        auto handle = handle_.get(in.values().device(),
                                  [&](int device) { return kiln::segmented_reduce<T>(by_, {.device = device}); });
        if (!handle) return std::move(handle).error();
        device_span<std::int32_t const> const at{offsets.data(), offsets.size()};
        return (**handle)(on, {in.values().data(), in.values().size()}, at, {out.data(), out.size()}, {.init = init_});
    }

    op by_;
    T init_;
    runtime::kept_handle<segmented_reduce_handle<T>> handle_;
};

// ---- Select --------------------------------------------------------------------------------------------------------

// Items whose mask byte is not 0. The result's size has to be known on the host: one fence per call on the GPU.
template <class T>
class select {
public:
    [[nodiscard]] result<buffer<T>> operator()(stream_ref on, buffer<T> const& in,
                                               buffer<std::uint8_t> const& mask) const {
        if (mask.size() < in.size()) return prims::too_small("mask", mask.size(), in.size());
        auto call = runtime::operation_call::begin(prims::select_operation, prims::facts_of(in, nullptr));
        if (!call) return std::move(call).error();
        runtime::brought const items{*call, on, in};
        if (!items) return items.why();
        runtime::brought const marks{*call, on, mask};
        if (!marks) return marks.why();
        auto out = runtime::room<T>(*call, on, in.size(), in);
        if (!out) return out;
        if (!call->on_gpu()) return out->first(cpu::select(items->host_span(), marks->host_span(), out->host_span()));
        auto count = buffer<std::uint64_t>::on_device(on, 1, items->device());
        if (!count) return std::move(count).error();
        if (auto ran = queue(on, *items, *marks, *out, *count); !ran) return std::move(ran).error();
        auto sizes = fence::make(on, items->device());
        if (!sizes) return std::move(sizes).error();
        auto const kept = sizes->add(count->data());
        if (!kept) return kept.error();
        if (auto waited = sizes->wait_sync(); !waited) return std::move(waited).error();
        return out->first(sizes->template get<std::uint64_t>(*kept));
    }
    // Everything on the device, the count too: no fence.
    [[nodiscard]] result<void> into(stream_ref on, buffer<T> const& in, buffer<std::uint8_t> const& mask,
                                    buffer<T>& out, buffer<std::uint64_t>& count) const {
        auto call = runtime::operation_call::begin(prims::select_operation, prims::facts_of(in, nullptr));
        if (!call) return std::move(call).error();
        if (auto fits = runtime::check_output(*call, prims::select_operation, out, in.size()); !fits) return fits;
        if (auto fits = runtime::check_output(*call, prims::select_operation, count, 1); !fits) return fits;
        if (call->on_gpu()) return queue(on, in, mask, out, count);
        *count.data() = cpu::select(in.host_span(), mask.host_span(), out.host_span());
        return {};
    }

private:
    [[nodiscard]] result<void> queue(stream_ref on, buffer<T> const& in, buffer<std::uint8_t> const& mask,
                                     buffer<T>& out, buffer<std::uint64_t>& count) const {
        auto handle = handle_.get(in.device(), [](int device) { return kiln::select<T>({.device = device}); });
        if (!handle) return std::move(handle).error();
        return (**handle)(on, {in.data(), in.size()}, mask.data(), out.data(), count.data());
    }

    runtime::kept_handle<select_by_mask<T>> handle_;
};

// ---- Bounds --------------------------------------------------------------------------------------------------------

template <class T>
class bound {
public:
    // Where each query belongs in `sorted`. Both must live in the same place.
    [[nodiscard]] result<buffer<std::int64_t>> operator()(stream_ref on, buffer<T> const& sorted,
                                                          buffer<T> const& queries) const {
        if (on_device(sorted.where()) != on_device(queries.where())) {
            return error{errc::invalid_argument,
                         "bounds: one operand is on the host and one on the device; move one of them by name"};
        }
        auto call = runtime::operation_call::begin(what_, prims::facts_of(queries, &by_));
        if (!call) return std::move(call).error();
        runtime::brought const values{*call, on, sorted};
        if (!values) return values.why();
        runtime::brought const asked{*call, on, queries};
        if (!asked) return asked.why();
        auto out = runtime::room<std::int64_t>(*call, on, queries.size(), queries);
        if (!out) return out;
        if (!call->on_gpu()) {
            auto const in = values->host_span();
            auto const q = asked->host_span();
            auto ran = prims::with_cpu_relation<T>(by_, [&](auto less) {
                if (side_ == prims::bound_side::lower) cpu::lower_bound(in, q, out->host_span(), less);
                else cpu::upper_bound(in, q, out->host_span(), less);
            });
            if (!ran) return std::move(ran).error();
            return out;
        }
        auto handle = handle_.get(asked->device(), [&](int device) {
            return side_ == prims::bound_side::lower ? kiln::lower_bound<T>(by_, {.device = device})
                                                     : kiln::upper_bound<T>(by_, {.device = device});
        });
        if (!handle) return std::move(handle).error();
        device_span<std::int64_t> const places{out->data(), out->size()};
        auto ran = (**handle)(on, {values->data(), values->size()}, {asked->data(), asked->size()}, places);
        if (!ran) return std::move(ran).error();
        return out;
    }

protected:
    bound(operation const& what, prims::bound_side side, op by) : what_{what}, side_{side}, by_{std::move(by)} {}

private:
    operation const& what_;
    prims::bound_side side_;
    op by_;
    runtime::kept_handle<bounds_handle<T>> handle_;
};
template <class T>
class lower_bound : public bound<T> {
public:
    explicit lower_bound(op by = less)
        : bound<T>{prims::lower_bound_operation, prims::bound_side::lower, std::move(by)} {}
};
template <class T>
class upper_bound : public bound<T> {
public:
    explicit upper_bound(op by = less)
        : bound<T>{prims::upper_bound_operation, prims::bound_side::upper, std::move(by)} {}
};

// ---- Sorts ---------------------------------------------------------------------------------------------------------

template <class K>
class radix_sort {
public:
    explicit radix_sort(sort_order order = sort_order::ascending) : order_{order} {}

    [[nodiscard]] result<buffer<K>> operator()(stream_ref on, buffer<K> const& keys) const {
        auto call = runtime::operation_call::begin(prims::radix_sort_operation, prims::facts_of(keys, nullptr));
        if (!call) return std::move(call).error();
        runtime::brought const moved{*call, on, keys};
        if (!moved) return moved.why();
        auto out = runtime::room<K>(*call, on, keys.size(), keys);
        if (!out) return out;
        if (!call->on_gpu()) {
            auto const way =
                order_ == sort_order::ascending ? cpu::sort_direction::ascending : cpu::sort_direction::descending;
            cpu::sort_keys(moved->host_span(), out->host_span(), cpu::radix_less<K>(way));
            return out;
        }
        auto handle =
            handle_.get(moved->device(), [&](int device) { return kiln::radix_sort<K>(order_, {.device = device}); });
        if (!handle) return std::move(handle).error();
        auto ran = (**handle)(on, {.keys_in = {moved->data(), moved->size()}, .keys_out = out->data()});
        if (!ran) return std::move(ran).error();
        return out;
    }

private:
    sort_order order_;
    runtime::kept_handle<radix_sort_handle<K, void>> handle_;
};

template <class K>
class merge_sort {
public:
    explicit merge_sort(op by = less) : by_{std::move(by)} {}

    [[nodiscard]] result<buffer<K>> operator()(stream_ref on, buffer<K> const& keys) const {
        auto call = runtime::operation_call::begin(prims::merge_sort_operation, prims::facts_of(keys, &by_));
        if (!call) return std::move(call).error();
        runtime::brought const moved{*call, on, keys};
        if (!moved) return moved.why();
        auto out = runtime::room<K>(*call, on, keys.size(), keys);
        if (!out) return out;
        if (!call->on_gpu()) {
            auto ran = prims::with_cpu_relation<K>(
                by_, [&](auto before) { cpu::sort_keys(moved->host_span(), out->host_span(), before); });
            if (!ran) return std::move(ran).error();
            return out;
        }
        auto handle =
            handle_.get(moved->device(), [&](int device) { return kiln::merge_sort<K>(by_, {.device = device}); });
        if (!handle) return std::move(handle).error();
        auto ran = (**handle)(on, {.keys_in = {moved->data(), moved->size()}, .keys_out = out->data()});
        if (!ran) return std::move(ran).error();
        return out;
    }

private:
    op by_;
    runtime::kept_handle<merge_sort_handle<K, void>> handle_;
};

// The first of every run of equal keys, with its value. One fence per call on the GPU.
template <class K, class V>
class unique_by_key {
public:
    explicit unique_by_key(op by = equal) : by_{std::move(by)} {}

    struct pairs {
        buffer<K> keys;
        buffer<V> values;
    };
    [[nodiscard]] result<pairs> operator()(stream_ref on, buffer<K> const& keys, buffer<V> const& values) const {
        if (values.size() < keys.size()) return prims::too_small("values", values.size(), keys.size());
        auto call = runtime::operation_call::begin(prims::unique_by_key_operation, prims::facts_of(keys, &by_));
        if (!call) return std::move(call).error();
        runtime::brought const k{*call, on, keys};
        if (!k) return k.why();
        runtime::brought const v{*call, on, values};
        if (!v) return v.why();
        auto keys_out = runtime::room<K>(*call, on, keys.size(), keys);
        if (!keys_out) return std::move(keys_out).error();
        auto values_out = runtime::room<V>(*call, on, keys.size(), keys);
        if (!values_out) return std::move(values_out).error();
        std::size_t kept = 0;
        if (!call->on_gpu()) {
            auto ran = prims::with_cpu_relation<K>(by_, [&](auto same) {
                kept = cpu::unique_by_key(k->host_span(), v->host_span(), keys_out->host_span(),
                                          values_out->host_span(), same);
            });
            if (!ran) return std::move(ran).error();
            return pairs{keys_out->first(kept), values_out->first(kept)};
        }
        auto counted = on_gpu(on, *k, *v, *keys_out, *values_out);
        if (!counted) return std::move(counted).error();
        return pairs{keys_out->first(*counted), values_out->first(*counted)};
    }

private:
    [[nodiscard]] result<std::size_t> on_gpu(stream_ref on, buffer<K> const& keys, buffer<V> const& values,
                                             buffer<K>& keys_out, buffer<V>& values_out) const {
        auto handle =
            handle_.get(keys.device(), [&](int device) { return kiln::unique_by_key<K, V>(by_, {.device = device}); });
        if (!handle) return std::move(handle).error();
        auto count = buffer<std::uint64_t>::on_device(on, 1, keys.device());
        if (!count) return std::move(count).error();
        auto ran = (**handle)(on,
                              {.keys_in = {keys.data(), keys.size()},
                               .keys_out = keys_out.data(),
                               .values_in = values.data(),
                               .values_out = values_out.data()},
                              count->data());
        if (!ran) return std::move(ran).error();
        auto sizes = fence::make(on, keys.device());
        if (!sizes) return std::move(sizes).error();
        auto const at = sizes->add(count->data());
        if (!at) return at.error();
        if (auto waited = sizes->wait_sync(); !waited) return std::move(waited).error();
        return static_cast<std::size_t>(sizes->template get<std::uint64_t>(*at));
    }

    op by_;
    runtime::kept_handle<unique_by_key_handle<K, V>> handle_;
};

}  // namespace run

}  // namespace kiln
