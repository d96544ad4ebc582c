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

namespace KILN_PUBLIC kiln {

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

[[nodiscard]] inline prim_options options_on(int device) noexcept {
    prim_options out;
    out.device = device;
    return out;
}
// The number that `queue` leaves in a buffer of one, on the device: one fence.
template <class Queue>
[[nodiscard]] result<std::size_t> counted_sync(stream_ref on, int device, Queue const& queue) {
    return buffer<std::uint64_t>::on_device(on, 1, device).and_then([&](buffer<std::uint64_t>&& count) {
        return queue(count).and_then([&] { return runtime::value_of_sync(on, count); });
    });
}
// What both sorts share: on_cpu(in, out) sorts there, with_handle(device, use) on the GPU.
template <class K, class OnCpu, class WithHandle>
[[nodiscard]] result<buffer<K>> sorted(result<runtime::operation_call> const& call, stream_ref on,
                                       buffer<K> const& keys, OnCpu const& on_cpu, WithHandle const& with_handle) {
    auto const fill = [&](auto const& decided, buffer<K> const& in, buffer<K>& out) -> result<void> {
        if (!decided.on_gpu()) return on_cpu(in.host_span(), out.host_span());
        sort_arguments<K> what;
        what.keys_in = runtime::span_of(in);
        what.keys_out = out.data();
        return with_handle(in.device(), [&](auto const& sort) { return sort(on, what); });
    };
    return runtime::filled<K>(call, on, keys.size(), keys, fill);
}
}  // namespace prims

namespace run {

// ---- Scan ----------------------------------------------------------------------------------------------------------

template <class T>
class scan {
public:
    [[nodiscard]] result<buffer<T>> operator()(stream_ref on, buffer<T> const& in) const {
        return runtime::filled<T>(
            begin(in), on, in.size(), in,
            [&](auto const& call, buffer<T> const& here, buffer<T>& out) { return go(call, on, here, out); });
    }
    // `out` may be `in`.
    [[nodiscard]] result<void> into(stream_ref on, buffer<T> const& in, buffer<T>& out) const {
        return begin(in).and_then([&](auto const& call) -> result<void> {
            if (auto fits = runtime::check_output(call, what_, out, in.size()); !fits) return fits;
            runtime::brought const here{call, on, in};
            return here ? go(call, on, *here, out) : here.why();
        });
    }

protected:
    scan(operation const& what, prims::scan_form form, op by, T init)
        : what_{what}, form_{form}, by_{std::move(by)}, init_{init} {}

private:
    [[nodiscard]] result<runtime::operation_call> begin(buffer<T> const& in) const {
        return runtime::operation_call::begin(what_, prims::facts_of(in, &by_));
    }
    [[nodiscard]] result<void> go(runtime::operation_call const& call, stream_ref on, buffer<T> const& in,
                                  buffer<T>& out) const {
        if (call.on_gpu()) {
            auto const make = form_ == prims::scan_form::exclusive ? kiln::exclusive_scan<T> : kiln::inclusive_scan<T>;
            return handle_.with(
                in.device(), [&](int device) { return make(by_, prims::options_on(device)); },
                [&](auto const& scan_all) {
                    return scan_all(on, runtime::span_of(in), runtime::span_of(out),
                                    prims::starting_with(scan_all, init_));
                });
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
        return go(runtime::operation_call::begin(prims::reduce_operation, facts), on, in, init_);
    }

private:
    [[nodiscard]] result<buffer<T>> in_chunks(stream_ref on, buffer<T> const& in, call_facts const& facts) const {
        std::optional<buffer<T>> whole;
        T so_far = init_;
        auto const run = [&](decision const& how, std::uint64_t first, std::uint64_t count) {
            runtime::operation_call call{prims::reduce_operation, in.where(), how};
            auto const out = go(std::move(call), on, in.part(first, count), so_far);
            return out.and_then([&](buffer<T> const& one) -> result<void> {
                if (count == in.size()) return whole.emplace(one), result<void>{};
                return runtime::value_of_sync(on, one).transform([&](T const& value) { so_far = value; });
            });
        };
        auto const room = [&](std::uint64_t n) { return runtime::room_for(n, sizeof(T), in.device()); };
        // By reference: off the heap.
        return decide_chunks(prims::reduce_operation, facts, {std::ref(room), std::ref(run)}).transform([&] {
            return whole ? *std::move(whole) : buffer<T>::copy_of(std::span<T const>{&so_far, 1});
        });
    }

    [[nodiscard]] result<buffer<T>> go(result<runtime::operation_call> const& decided, stream_ref on,
                                       buffer<T> const& in, T const& init) const {
        auto const fill = [&](auto const& call, buffer<T> const& here, buffer<T>& out) -> result<void> {
            if (!call.on_gpu()) {
                return prims::with_cpu_operator<T>(
                    by_, [&](auto f) { *out.data() = cpu::reduce(here.host_span(), f, init); });
            }
            return handle_.with(
                here.device(), [&](int device) { return kiln::reduce<T>(by_, prims::options_on(device)); },
                [&](auto const& all) {
                    return all(on, runtime::span_of(here), out.data(), prims::starting_with(all, init));
                });
        };
        return runtime::filled<T>(decided, on, 1, in, fill);
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
        return runtime::operation_call::begin(prims::segmented_reduce_operation, prims::facts_of(in.values(), &by_))
            .and_then([&](auto const& call) {
                auto const here = call.on_gpu() ? in.to_device(on, in.values().device()) : result<column<T>>{in};
                return here.and_then([&](column<T> const& lists) { return reduced(call, on, lists); });
            });
    }

private:
    [[nodiscard]] result<column<T>> reduced(runtime::operation_call const& call, stream_ref on,
                                            column<T> const& in) const {
        return runtime::room<T>(call, on, in.rows(), in.values()).and_then([&](buffer<T>&& out) {
            return go(call, on, in, out).transform([&] {
                return in.validity() ? column<T>{std::move(out), *in.validity()} : column<T>{std::move(out)};
            });
        });
    }
    [[nodiscard]] result<void> go(runtime::operation_call const& call, stream_ref on, column<T> const& in,
                                  buffer<T>& out) const {
        auto const& offsets = *in.offsets();
        if (!call.on_gpu()) {
            return prims::with_cpu_operator<T>(by_, [&](auto f) {
                cpu::segmented_reduce(in.values().host_span(), offsets.host_span(), out.host_span(), f, init_);
            });
        }
        return handle_.with(
            in.values().device(), [&](int device) { return kiln::segmented_reduce<T>(by_, prims::options_on(device)); },
            [&](auto const& each) {
                return each(on, runtime::span_of(in.values()), runtime::span_of(offsets), runtime::span_of(out),
                            prims::starting_with(each, init_));
            });
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
        std::size_t kept = 0;
        auto const fill = [&](auto const& call, buffer<T> const& items, buffer<T>& out) -> result<void> {
            runtime::brought const marks{call, on, mask};
            if (!marks) return marks.why();
            if (!call.on_gpu())
                return kept = cpu::select(items.host_span(), marks->host_span(), out.host_span()), result<void>{};
            return prims::counted_sync(on, items.device(), [&](auto& n) { return queue(on, items, *marks, out, n); })
                .transform([&](std::size_t n) { kept = n; });
        };
        return runtime::filled<T>(begin(in), on, in.size(), in, fill).transform([&](buffer<T> const& all) {
            return all.first(kept);
        });
    }
    // Everything on the device, the count too: no fence.
    [[nodiscard]] result<void> into(stream_ref on, buffer<T> const& in, buffer<std::uint8_t> const& mask,
                                    buffer<T>& out, buffer<std::uint64_t>& count) const {
        return begin(in).and_then([&](auto const& call) -> result<void> {
            if (auto fits = runtime::check_output(call, prims::select_operation, out, in.size()); !fits) return fits;
            if (auto fits = runtime::check_output(call, prims::select_operation, count, 1); !fits) return fits;
            if (call.on_gpu()) return queue(on, in, mask, out, count);
            *count.data() = cpu::select(in.host_span(), mask.host_span(), out.host_span());
            return {};
        });
    }

private:
    [[nodiscard]] result<runtime::operation_call> begin(buffer<T> const& in) const {
        return runtime::operation_call::begin(prims::select_operation, prims::facts_of(in, nullptr));
    }
    [[nodiscard]] result<void> queue(stream_ref on, buffer<T> const& in, buffer<std::uint8_t> const& mask,
                                     buffer<T>& out, buffer<std::uint64_t>& count) const {
        return handle_.with(
            in.device(), [](int device) { return kiln::select<T>(prims::options_on(device)); },
            [&](auto const& those) { return those(on, runtime::span_of(in), mask.data(), out.data(), count.data()); });
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
        auto const call = runtime::operation_call::begin(what_, prims::facts_of(queries, &by_));
        return runtime::filled<std::int64_t>(
            call, on, queries.size(), queries,
            [&](auto const& decided, buffer<T> const& asked, buffer<std::int64_t>& out) -> result<void> {
                runtime::brought const values{decided, on, sorted};
                return values ? go(decided, on, *values, asked, out) : values.why();
            });
    }

protected:
    bound(operation const& what, prims::bound_side side, op by) : what_{what}, side_{side}, by_{std::move(by)} {}

private:
    [[nodiscard]] result<void> go(runtime::operation_call const& call, stream_ref on, buffer<T> const& sorted,
                                  buffer<T> const& queries, buffer<std::int64_t>& out) const {
        if (!call.on_gpu()) {
            return prims::with_cpu_relation<T>(by_, [&](auto before) {
                auto const in = sorted.host_span(), asked = queries.host_span();
                if (side_ == prims::bound_side::lower) cpu::lower_bound(in, asked, out.host_span(), before);
                else cpu::upper_bound(in, asked, out.host_span(), before);
            });
        }
        auto const make = side_ == prims::bound_side::lower ? kiln::lower_bound<T> : kiln::upper_bound<T>;
        return handle_.with(
            queries.device(), [&](int device) { return make(by_, prims::options_on(device)); },
            [&](auto const& find) {
                return find(on, runtime::span_of(sorted), runtime::span_of(queries), runtime::span_of(out));
            });
    }

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
        auto const call = runtime::operation_call::begin(prims::radix_sort_operation, prims::facts_of(keys, nullptr));
        auto const on_cpu = [&](std::span<K const> in, std::span<K> out) -> result<void> {
            auto const way =
                order_ == sort_order::ascending ? cpu::sort_direction::ascending : cpu::sort_direction::descending;
            return cpu::sort_keys(in, out, cpu::radix_less<K>(way)), result<void>{};
        };
        auto const make = [&](int device) { return kiln::radix_sort<K>(order_, prims::options_on(device)); };
        return prims::sorted(call, on, keys, on_cpu,
                             [&](int device, auto const& use) { return handle_.with(device, make, use); });
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
        auto const call = runtime::operation_call::begin(prims::merge_sort_operation, prims::facts_of(keys, &by_));
        auto const on_cpu = [&](std::span<K const> in, std::span<K> out) {
            return prims::with_cpu_relation<K>(by_, [&](auto before) { cpu::sort_keys(in, out, before); });
        };
        auto const make = [&](int device) { return kiln::merge_sort<K>(by_, prims::options_on(device)); };
        return prims::sorted(call, on, keys, on_cpu,
                             [&](int device, auto const& use) { return handle_.with(device, make, use); });
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
        return runtime::operation_call::begin(prims::unique_by_key_operation, prims::facts_of(keys, &by_))
            .and_then([&](auto const& call) -> result<pairs> {
                runtime::brought const k{call, on, keys};
                if (!k) return k.why();
                runtime::brought const v{call, on, values};
                if (!v) return v.why();
                return kept(call, on, *k, *v);
            });
    }

private:
    [[nodiscard]] result<pairs> kept(runtime::operation_call const& call, stream_ref on, buffer<K> const& keys,
                                     buffer<V> const& values) const {
        auto keys_out = runtime::room<K>(call, on, keys.size(), keys);
        if (!keys_out) return std::move(keys_out).error();
        auto values_out = runtime::room<V>(call, on, keys.size(), keys);
        if (!values_out) return std::move(values_out).error();
        auto const count = call.on_gpu() ? on_gpu(on, keys, values, *keys_out, *values_out)
                                         : on_cpu(keys, values, *keys_out, *values_out);
        return count.transform([&](std::size_t n) { return pairs{keys_out->first(n), values_out->first(n)}; });
    }
    [[nodiscard]] result<std::size_t> on_cpu(buffer<K> const& keys, buffer<V> const& values, buffer<K>& keys_out,
                                             buffer<V>& values_out) const {
        std::size_t n = 0;
        auto const ran = prims::with_cpu_relation<K>(by_, [&](auto same) {
            n = cpu::unique_by_key(keys.host_span(), values.host_span(), keys_out.host_span(), values_out.host_span(),
                                   same);
        });
        return ran.transform([&] { return n; });
    }
    [[nodiscard]] result<std::size_t> on_gpu(stream_ref on, buffer<K> const& keys, buffer<V> const& values,
                                             buffer<K>& keys_out, buffer<V>& values_out) const {
        sort_arguments<K, V> what;
        what.keys_in = runtime::span_of(keys);
        what.keys_out = keys_out.data();
        what.values_in = values.data();
        what.values_out = values_out.data();
        return handle_.with(
            keys.device(), [&](int device) { return kiln::unique_by_key<K, V>(by_, prims::options_on(device)); },
            [&](auto const& unique) {
                return prims::counted_sync(on, keys.device(), [&](auto& n) { return unique(on, what, n.data()); });
            });
    }

    op by_;
    runtime::kept_handle<unique_by_key_handle<K, V>> handle_;
};

}  // namespace run

}  // namespace kiln
