// SPDX-License-Identifier: Apache-2.0
//
// Device-wide algorithms, specialised by type and operator when a handle is made. Making one finds or compiles (and then
// blocks); calling one queues work on the stream and returns: it never synchronises, and allocates only while its scratch
// still grows. Scratch is pooled per stream; a caller may bring its own instead. Handles are cheap to copy and safe from
// several threads. In a stream capture nothing is allocated: call reserve() on the stream before each capture, or hand in
// scratch; the graphs then own what was reserved.
// Inputs and outputs must not overlap unless said otherwise. Counts stay on the device.
//
//     auto scan = kiln::exclusive_scan<int>(kiln::plus).value();
//     scan(stream, {in, n}, {out, n}).value();
#pragma once

#include <kiln/prims/untyped.hpp>

namespace KILN_PUBLIC kiln {

namespace prims {
// The same handle with its types.
template <class Handle, class Untyped>
[[nodiscard]] result<Handle> typed(result<Untyped> made) {
    return std::move(made).transform([](Untyped&& handle) { return Handle(std::move(handle)); });
}
}  // namespace prims

// ---- Scan ----------------------------------------------------------------------------------------------------------

template <class T>
class scan_handle : public prims::scan {
public:
    explicit scan_handle(prims::scan untyped) : prims::scan{std::move(untyped)} {}

    struct extras {
        T init = T{};  // of an exclusive scan
        scratch_span scratch = {};
    };
    // `out` may be `in`.
    result<void> operator()(stream_ref on, device_span<T const> in, device_span<T> out, extras const& more = {}) const {
        if (out.size < in.size) return prims::too_small("out", out.size, in.size);
        return run(on, in.data, out.data, in.size, &more.init, more.scratch);
    }
    result<void> reserve(stream_ref on, std::size_t n) const { return reserve_bytes(on, scratch_bytes(n)); }
};

// out[i] = init (+) in[0] (+) ... (+) in[i - 1]
template <class T>
[[nodiscard]] result<scan_handle<T>> exclusive_scan(op const& by, prim_options const& how = {}) {
    return prims::typed<scan_handle<T>>(prims::scan::make(prims::scan_form::exclusive, type_of<T>(), by, how));
}
// out[i] = in[0] (+) ... (+) in[i]
template <class T>
[[nodiscard]] result<scan_handle<T>> inclusive_scan(op const& by, prim_options const& how = {}) {
    return prims::typed<scan_handle<T>>(prims::scan::make(prims::scan_form::inclusive, type_of<T>(), by, how));
}

// ---- Reduce --------------------------------------------------------------------------------------------------------

template <class T>
class reduce_handle : public prims::reduce {
public:
    explicit reduce_handle(prims::reduce untyped) : prims::reduce{std::move(untyped)} {}

    struct extras {
        T init = T{};  // combined with the result; the result itself for no items
        scratch_span scratch = {};
    };
    // Writes one element.
    result<void> operator()(stream_ref on, device_span<T const> in, T* out, extras const& more = {}) const {
        return run(on, in.data, in.size, out, &more.init, more.scratch);
    }
    result<void> reserve(stream_ref on, std::size_t n) const { return reserve_bytes(on, scratch_bytes(n)); }
};

template <class T>
[[nodiscard]] result<reduce_handle<T>> reduce(op const& by, prim_options const& how = {}) {
    return prims::typed<reduce_handle<T>>(prims::reduce::make(type_of<T>(), by, how));
}

template <class T>
class segmented_reduce_handle : public prims::segmented_reduce {
public:
    explicit segmented_reduce_handle(prims::segmented_reduce untyped) : prims::segmented_reduce{std::move(untyped)} {}

    struct extras {
        T init = T{};
        scratch_span scratch = {};
    };
    // Segment i is in[offsets[i]] up to in[offsets[i + 1]]: one offset more than there are segments. Offset: a 32- or 64-bit
    // integer, never negative.
    template <class Offset>
    result<void> operator()(stream_ref on, device_span<T const> in, device_span<Offset> offsets, device_span<T> out,
                            extras const& more = {}) const {
        static_assert(std::is_integral_v<Offset> && (sizeof(Offset) == 4 || sizeof(Offset) == 8));
        std::size_t const count = offsets.size > 0 ? offsets.size - 1 : 0;
        if (out.size < count) return prims::too_small("out", out.size, count);
        prims::segment_offsets const where{offsets.data, offsets.data + 1, count, sizeof(Offset)};
        return run(on, in.data, in.size, where, out.data, &more.init, more.scratch);
    }
    result<void> reserve(stream_ref on, std::size_t n, std::size_t segments) const {
        return reserve_bytes(on, scratch_bytes(n, segments));
    }
};

template <class T>
[[nodiscard]] result<segmented_reduce_handle<T>> segmented_reduce(op const& by, prim_options const& how = {}) {
    return prims::typed<segmented_reduce_handle<T>>(prims::segmented_reduce::make(type_of<T>(), by, how));
}

// ---- Select --------------------------------------------------------------------------------------------------------
// All keep the order of what they keep and write how many that are to `count`, on the device.

template <class T>
class select_handle : public prims::select {
public:
    explicit select_handle(prims::select untyped) : prims::select{std::move(untyped)} {}
    result<void> reserve(stream_ref on, std::size_t n) const { return reserve_bytes(on, scratch_bytes(n)); }
};

// Items whose mask byte is not 0.
template <class T>
struct select_by_mask : select_handle<T> {
    using select_handle<T>::select_handle;
    result<void> operator()(stream_ref on, device_span<T const> in, std::uint8_t const* mask, T* out,
                            std::uint64_t* count, scratch_span scratch = {}) const {
        return this->run(on, prims::select_call{in.data, mask, in.size, out, count, scratch});
    }
};
// Items for which the operator holds.
template <class T>
struct select_by_value : select_handle<T> {
    using select_handle<T>::select_handle;
    result<void> operator()(stream_ref on, device_span<T const> in, T* out, std::uint64_t* count,
                            scratch_span scratch = {}) const {
        return this->run(on, prims::select_call{in.data, nullptr, in.size, out, count, scratch});
    }
};
// Indices of the mask bytes that are not 0.
template <class Index>
struct select_indices_by_mask : select_handle<Index> {
    using select_handle<Index>::select_handle;
    result<void> operator()(stream_ref on, device_span<std::uint8_t const> mask, Index* out, std::uint64_t* count,
                            scratch_span scratch = {}) const {
        return this->run(on, prims::select_call{nullptr, mask.data, mask.size, out, count, scratch});
    }
};
// Indices below n for which the operator holds.
template <class Index>
struct select_indices_by_value : select_handle<Index> {
    using select_handle<Index>::select_handle;
    result<void> operator()(stream_ref on, std::size_t n, Index* out, std::uint64_t* count,
                            scratch_span scratch = {}) const {
        return this->run(on, prims::select_call{nullptr, nullptr, n, out, count, scratch});
    }
};

template <class T>
[[nodiscard]] result<select_by_mask<T>> select(prim_options const& how = {}) {
    return prims::typed<select_by_mask<T>>(
        prims::select::make(prims::select_form::items, prims::value_type_of<T>(), nullptr, how));
}
template <class T>
[[nodiscard]] result<select_by_value<T>> select_if(op const& by, prim_options const& how = {}) {
    return prims::typed<select_by_value<T>>(prims::select::make(prims::select_form::items, type_of<T>(), &by, how));
}
template <class Index>
[[nodiscard]] result<select_indices_by_mask<Index>> select_indices(prim_options const& how = {}) {
    static_assert(std::is_integral_v<Index> && sizeof(Index) >= 4);
    return prims::typed<select_indices_by_mask<Index>>(
        prims::select::make(prims::select_form::indices, type_of<Index>(), nullptr, how));
}
template <class Index>
[[nodiscard]] result<select_indices_by_value<Index>> select_indices_if(op const& by, prim_options const& how = {}) {
    static_assert(std::is_integral_v<Index> && sizeof(Index) >= 4);
    return prims::typed<select_indices_by_value<Index>>(
        prims::select::make(prims::select_form::indices, type_of<Index>(), &by, how));
}

// ---- Bounds --------------------------------------------------------------------------------------------------------

template <class T>
class bounds_handle : public prims::bounds {
public:
    explicit bounds_handle(prims::bounds untyped) : prims::bounds{std::move(untyped)} {}

    // `sorted` by the handle's order. Index: a 32- or 64-bit integer that can hold sorted.size.
    template <class Index>
    result<void> operator()(stream_ref on, device_span<T const> sorted, device_span<T const> queries,
                            device_span<Index> out) const {
        static_assert(std::is_integral_v<Index> && (sizeof(Index) == 4 || sizeof(Index) == 8));
        if (out.size < queries.size) return prims::too_small("out", out.size, queries.size);
        return run(on,
                   prims::bounds_call{sorted.data, sorted.size, queries.data, queries.size, out.data, sizeof(Index)});
    }
};

// The first place a query could be put in without breaking the order.
template <class T>
[[nodiscard]] result<bounds_handle<T>> lower_bound(op const& by = less, prim_options const& how = {}) {
    return prims::typed<bounds_handle<T>>(prims::bounds::make(prims::bound_side::lower, type_of<T>(), by, how));
}
// The last.
template <class T>
[[nodiscard]] result<bounds_handle<T>> upper_bound(op const& by = less, prim_options const& how = {}) {
    return prims::typed<bounds_handle<T>>(prims::bounds::make(prims::bound_side::upper, type_of<T>(), by, how));
}

// ---- Sorts and unique ----------------------------------------------------------------------------------------------

template <class K, class V = void>
struct sort_arguments {
    device_span<K const> keys_in;
    K* keys_out = nullptr;
    V const* values_in = nullptr;
    V* values_out = nullptr;
    int first_bit = 0;  // radix sort: only bits first_bit ... last_bit - 1 count
    int last_bit = -1;  // -1: all of them
    scratch_span scratch = {};

    [[nodiscard]] prims::sort_call untyped() const noexcept {
        return {keys_in.data, keys_out, values_in, values_out, keys_in.size, first_bit, last_bit, scratch};
    }
};

// Both sorts are stable and leave their input as it is.
template <class K, class V>
class radix_sort_handle : public prims::radix_sort {
public:
    explicit radix_sort_handle(prims::radix_sort untyped) : prims::radix_sort{std::move(untyped)} {}
    result<void> operator()(stream_ref on, sort_arguments<K, V> const& what) const { return run(on, what.untyped()); }
    result<void> reserve(stream_ref on, std::size_t n) const { return reserve_bytes(on, scratch_bytes(n)); }
};

using prims::sort_order;

// By the bits of the keys: integers, and floats with -NaN first, NaN last and -0 equal to +0. V = void: keys alone.
template <class K, class V = void>
[[nodiscard]] result<radix_sort_handle<K, V>> radix_sort(sort_order order = sort_order::ascending,
                                                         prim_options const& how = {}) {
    static_assert(scalar_of<K>() != scalar::record, "kiln::radix_sort: keys are numbers; use merge_sort for structs");
    return prims::typed<radix_sort_handle<K, V>>(
        prims::radix_sort::make(type_of<K>(), prims::value_type_of<V>(), order, how));
}

template <class K, class V>
class merge_sort_handle : public prims::merge_sort {
public:
    explicit merge_sort_handle(prims::merge_sort untyped) : prims::merge_sort{std::move(untyped)} {}
    result<void> operator()(stream_ref on, sort_arguments<K, V> const& what) const { return run(on, what.untyped()); }
    result<void> reserve(stream_ref on, std::size_t n) const { return reserve_bytes(on, scratch_bytes(n)); }
};

// `by` is a strict weak order.
template <class K, class V = void>
[[nodiscard]] result<merge_sort_handle<K, V>> merge_sort(op const& by = less, prim_options const& how = {}) {
    return prims::typed<merge_sort_handle<K, V>>(
        prims::merge_sort::make(type_of<K>(), prims::value_type_of<V>(), by, how));
}

template <class K, class V>
class unique_by_key_handle : public prims::unique_by_key {
public:
    explicit unique_by_key_handle(prims::unique_by_key untyped) : prims::unique_by_key{std::move(untyped)} {}
    result<void> operator()(stream_ref on, sort_arguments<K, V> const& what, std::uint64_t* count) const {
        return run(on, what.untyped(), count);
    }
    result<void> reserve(stream_ref on, std::size_t n) const { return reserve_bytes(on, scratch_bytes(n)); }
};

// The first of every run of neighbours that `by` calls equal, with its value.
template <class K, class V>
[[nodiscard]] result<unique_by_key_handle<K, V>> unique_by_key(op const& by = equal, prim_options const& how = {}) {
    return prims::typed<unique_by_key_handle<K, V>>(
        prims::unique_by_key::make(type_of<K>(), prims::value_type_of<V>(), by, how));
}

// ---- Transform and gather ------------------------------------------------------------------------------------------

template <class T, class R>
class transform_handle : public prims::transform {
public:
    explicit transform_handle(prims::transform untyped) : prims::transform{std::move(untyped)} {}
    // `out` may be `in` where T is R.
    result<void> operator()(stream_ref on, device_span<T const> in, device_span<R> out) const {
        if (out.size < in.size) return prims::too_small("out", out.size, in.size);
        return run(on, in.data, out.data, in.size);
    }
};

template <class T, class R = T>
[[nodiscard]] result<transform_handle<T, R>> transform(op const& by, prim_options const& how = {}) {
    return prims::typed<transform_handle<T, R>>(prims::transform::make(type_of<T>(), type_of<R>(), by, how));
}

template <class T, class Index>
class gather_handle : public prims::gather {
public:
    explicit gather_handle(prims::gather untyped) : prims::gather{std::move(untyped)} {}
    // out[i] = in[index[i]]; the indices are not checked.
    result<void> operator()(stream_ref on, T const* in, device_span<Index const> index, device_span<T> out) const {
        if (out.size < index.size) return prims::too_small("out", out.size, index.size);
        return run(on, in, index.data, out.data, index.size);
    }
};

template <class T, class Index = std::uint32_t>
[[nodiscard]] result<gather_handle<T, Index>> gather(prim_options const& how = {}) {
    static_assert(std::is_integral_v<Index>);
    return prims::typed<gather_handle<T, Index>>(prims::gather::make(prims::value_type_of<T>(), type_of<Index>(), how));
}

namespace prims {
// What a call of this handle takes besides its operands, with a first value. Assigned, not initialised by name: in templates
// nvcc hands names on to the host compiler in a form of its own.
template <class Handle, class T>
[[nodiscard]] typename Handle::extras starting_with(Handle const&, T const& init) {
    typename Handle::extras out;
    out.init = init;
    return out;
}
}  // namespace prims

}  // namespace kiln
