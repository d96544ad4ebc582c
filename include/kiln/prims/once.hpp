// SPDX-License-Identifier: Apache-2.0
//
// The primitives in one call, for code that has no place to keep a handle. Each finds its handle anew (a lookup of some
// tens of microseconds; the first call of a kind finds or compiles, and then blocks), queues the work on the stream and
// returns. Hot paths keep a handle: see kiln/prims/handles.hpp, whose promises hold here too.
//
//     kiln::once::exclusive_scan<int>(stream, {in, n}, {out, n}, kiln::plus).value();
#pragma once

#include <kiln/prims/handles.hpp>

namespace KILN_PUBLIC kiln {
namespace once {

template <class T>
result<void> exclusive_scan(stream_ref on, device_span<T const> in, device_span<T> out, op const& by = plus,
                            T init = T{}) {
    return kiln::exclusive_scan<T>(by).and_then(
        [&](auto const& handle) { return handle(on, in, out, prims::starting_with(handle, init)); });
}
template <class T>
result<void> inclusive_scan(stream_ref on, device_span<T const> in, device_span<T> out, op const& by = plus) {
    return kiln::inclusive_scan<T>(by).and_then([&](auto const& handle) { return handle(on, in, out); });
}

template <class T>
result<void> reduce(stream_ref on, device_span<T const> in, T* out, op const& by = plus, T init = T{}) {
    return kiln::reduce<T>(by).and_then(
        [&](auto const& handle) { return handle(on, in, out, prims::starting_with(handle, init)); });
}
template <class T, class Offset>
result<void> segmented_reduce(stream_ref on, device_span<T const> in, device_span<Offset> offsets, device_span<T> out,
                              op const& by = plus, T init = T{}) {
    return kiln::segmented_reduce<T>(by).and_then(
        [&](auto const& handle) { return handle(on, in, offsets, out, prims::starting_with(handle, init)); });
}

// By mask; the number of items kept goes to `count`, on the device.
template <class T>
result<void> select(stream_ref on, device_span<T const> in, std::uint8_t const* mask, T* out, std::uint64_t* count) {
    return kiln::select<T>().and_then([&](auto const& handle) { return handle(on, in, mask, out, count); });
}
template <class T>
result<void> select_if(stream_ref on, device_span<T const> in, T* out, std::uint64_t* count, op const& by) {
    return kiln::select_if<T>(by).and_then([&](auto const& handle) { return handle(on, in, out, count); });
}
template <class Index>
result<void> select_indices(stream_ref on, device_span<std::uint8_t const> mask, Index* out, std::uint64_t* count) {
    return kiln::select_indices<Index>().and_then([&](auto const& handle) { return handle(on, mask, out, count); });
}

template <class T, class Index>
result<void> lower_bound(stream_ref on, device_span<T const> sorted, device_span<T const> queries,
                         device_span<Index> out, op const& by = less) {
    return kiln::lower_bound<T>(by).and_then([&](auto const& handle) { return handle(on, sorted, queries, out); });
}
template <class T, class Index>
result<void> upper_bound(stream_ref on, device_span<T const> sorted, device_span<T const> queries,
                         device_span<Index> out, op const& by = less) {
    return kiln::upper_bound<T>(by).and_then([&](auto const& handle) { return handle(on, sorted, queries, out); });
}

template <class K, class V = void>
result<void> radix_sort(stream_ref on, sort_arguments<K, V> const& what, sort_order order = sort_order::ascending) {
    return kiln::radix_sort<K, V>(order).and_then([&](auto const& handle) { return handle(on, what); });
}
template <class K, class V = void>
result<void> merge_sort(stream_ref on, sort_arguments<K, V> const& what, op const& by = less) {
    return kiln::merge_sort<K, V>(by).and_then([&](auto const& handle) { return handle(on, what); });
}
template <class K, class V>
result<void> unique_by_key(stream_ref on, sort_arguments<K, V> const& what, std::uint64_t* count,
                           op const& by = equal) {
    return kiln::unique_by_key<K, V>(by).and_then([&](auto const& handle) { return handle(on, what, count); });
}

template <class T, class R = T>
result<void> transform(stream_ref on, device_span<T const> in, device_span<R> out, op const& by) {
    return kiln::transform<T, R>(by).and_then([&](auto const& handle) { return handle(on, in, out); });
}
// out[i] = in[index[i]]; the indices are not checked.
template <class T, class Index>
result<void> gather(stream_ref on, T const* in, device_span<Index const> index, device_span<T> out) {
    return kiln::gather<T, Index>().and_then([&](auto const& handle) { return handle(on, in, index, out); });
}

}  // namespace once
}  // namespace kiln
