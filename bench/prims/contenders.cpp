// SPDX-License-Identifier: Apache-2.0
#include "prims/contenders.hpp"

#include "prims/cub_reference.hpp"

#include <kiln/prims/handles.hpp>

namespace kiln::bench {

namespace {

void random_i32(arena& a, std::size_t n) {
    a.fill<std::int32_t>(a.keys, n, pattern::random);
    a.fill<std::int32_t>(a.values, n, pattern::index);
}
void random_u64(arena& a, std::size_t n) {
    a.fill<std::uint64_t>(a.keys, n, pattern::random);
    a.fill<std::int32_t>(a.values, n, pattern::index);
}
void random_f64(arena& a, std::size_t n) { a.fill<double>(a.keys, n, pattern::small, 1000); }
void half_mask(arena& a, std::size_t n) { a.fill<std::uint8_t>(a.mask, n, pattern::small, 2); }
template <class K>
void runs_of_4(arena& a, std::size_t n) {
    a.fill<K>(a.keys, n, pattern::quotient, 4);
    a.fill<std::int32_t>(a.values, n, pattern::index);
}
template <class K>
void sorted_and_queries(arena& a, std::size_t n) {
    a.fill<K>(a.keys, n, pattern::multiple, 7);
    a.fill<K>(a.values, n, pattern::small, n * 7);
}
template <class K>
void sorted_and_sorted_queries(arena& a, std::size_t n) {
    a.fill<K>(a.keys, n, pattern::multiple, 7);
    a.fill<K>(a.values, n, pattern::between, 7);
}
auto segments_of(std::size_t length) {
    return [length](arena& a, std::size_t n) {
        random_f64(a, n);
        a.fill<std::int32_t>(a.offsets, n / length + 1, pattern::multiple, length);
    };
}

template <class T>
contender scan(std::string name, int cub, op const& by) {
    return {std::move(name), cub, sizeof(T) == 4 ? random_i32 : random_u64,
            [h = exclusive_scan<T>(by).value()](arena& a, std::size_t n) {
                h(a.on, {a.keys.as<T>(), n}, {a.keys_out.as<T>(), n}).value();
            }};
}
template <class T>
contender reduction(std::string name, int cub, op const& by) {
    return {std::move(name), cub, std::is_same_v<T, double> ? random_f64 : random_i32,
            [h = reduce<T>(by).value()](arena& a, std::size_t n) {
                h(a.on, {a.keys.as<T>(), n}, a.keys_out.as<T>()).value();
            }};
}
template <class Index>
contender compaction(std::string name, int cub) {
    return {std::move(name), cub, half_mask,
            [h = select_indices<Index>().value()](arena& a, std::size_t n) {
                h(a.on, {a.mask.as<std::uint8_t>(), n}, a.keys_out.as<Index>(), a.count.as<std::uint64_t>()).value();
            },
            [](arena& a) -> void const* { return a.mask.get(); }};
}
contender segmented(std::string name, int cub, op const& by, std::size_t length) {
    return {std::move(name),
            cub,
            segments_of(length),
            [h = segmented_reduce<double>(by).value(), length](arena& a, std::size_t n) {
                h(a.on, {a.keys.as<double>(), n},
                  device_span<std::int32_t>{a.offsets.as<std::int32_t>(), n / length + 1},
                  {a.keys_out.as<double>(), n / length})
                    .value();
            },
            [](arena& a) -> void const* { return a.offsets.get(); },
            length};
}
template <class K>
contender bound(std::string name, int cub, result<bounds_handle<K>> made,
                std::function<void(arena&, std::size_t)> prepare) {
    return {std::move(name), cub, std::move(prepare), [h = std::move(made).value()](arena& a, std::size_t n) {
                h(a.on, {a.keys.as<K>(), n}, {a.values.as<K>(), n},
                  device_span<std::uint32_t>{a.keys_out.as<std::uint32_t>(), n})
                    .value();
            }};
}
template <class K, class Handle>
contender pairs(std::string name, int cub, Handle h) {
    return {std::move(name), cub, sizeof(K) == 4 ? random_i32 : random_u64, [h](arena& a, std::size_t n) {
                h(a.on, {.keys_in = {a.keys.as<K>(), n},
                         .keys_out = a.keys_out.as<K>(),
                         .values_in = a.values.as<std::int32_t>(),
                         .values_out = a.values_out.as<std::int32_t>()})
                    .value();
            }};
}
template <class K>
contender unique(std::string name, int cub) {
    return {std::move(name), cub, runs_of_4<K>,
            [h = unique_by_key<K, std::int32_t>().value()](arena& a, std::size_t n) {
                h(a.on,
                  {.keys_in = {a.keys.as<K>(), n},
                   .keys_out = a.keys_out.as<K>(),
                   .values_in = a.values.as<std::int32_t>(),
                   .values_out = a.values_out.as<std::int32_t>()},
                  a.count.as<std::uint64_t>())
                    .value();
            }};
}

}  // namespace

std::vector<contender> specs() {
    using i32 = std::int32_t;
    using i64 = std::int64_t;
    using u64 = std::uint64_t;
    std::vector<contender> out;
    out.push_back(scan<i32>("exclusive_scan_i32", cub_exclusive_scan_i32, plus));
    out.push_back(scan<i64>("exclusive_scan_i64", cub_exclusive_scan_i64, plus));
    out.push_back(compaction<i32>("select_i32", cub_select_i32));
    out.push_back(compaction<i64>("select_i64", cub_select_i64));
    out.push_back(reduction<double>("reduce_sum_f64", cub_reduce_sum_f64, plus));
    out.push_back(reduction<i32>("reduce_sum_i32", cub_reduce_sum_i32, plus));
    out.push_back(segmented("segmented_reduce_sum_f64", cub_segmented_reduce_sum_f64, plus, 1024));
    out.push_back(segmented("segmented_reduce_min_f64", cub_segmented_reduce_min_f64, kiln::min, 1024));
    out.push_back(segmented("segmented_reduce_max_f64", cub_segmented_reduce_max_f64, kiln::max, 1024));
    out.push_back(bound<i32>("lower_bound_i32", cub_lower_bound_i32, lower_bound<i32>(), sorted_and_queries<i32>));
    out.push_back(bound<u64>("lower_bound_u64", cub_lower_bound_u64, lower_bound<u64>(), sorted_and_queries<u64>));
    out.push_back(bound<i32>("upper_bound_i32", cub_upper_bound_i32, upper_bound<i32>(), sorted_and_queries<i32>));
    out.push_back(bound<u64>("upper_bound_u64", cub_upper_bound_u64, upper_bound<u64>(), sorted_and_queries<u64>));
    out.push_back(pairs<i32>("radix_sort_i32_i32", cub_radix_sort_i32_i32, radix_sort<i32, i32>().value()));
    out.push_back(pairs<u64>("radix_sort_u64_i32", cub_radix_sort_u64_i32, radix_sort<u64, i32>().value()));
    out.push_back(pairs<u64>("merge_sort_u64_i32", cub_merge_sort_u64_i32, merge_sort<u64, i32>().value()));
    out.push_back(unique<i32>("unique_by_key_i32_i32", cub_unique_by_key_i32_i32));
    out.push_back(unique<u64>("unique_by_key_u64_i32", cub_unique_by_key_u64_i32));
    op const saturating{"a + b > 1000000 ? 1000000 : a + b"};
    out.push_back(scan<i32>("exclusive_scan_i32, user operator", cub_scan_i32_functor, saturating));
    out.push_back(reduction<i32>("reduce_i32, user operator", cub_reduce_i32_functor, saturating));
    contender chosen{"select_if_i32, user operator", cub_select_if_i32, random_i32,
                     [h = select_if<i32>(op{"a % 3 == 0"}).value()](arena& a, std::size_t n) {
                         h(a.on, {a.keys.as<i32>(), n}, a.keys_out.as<i32>(), a.count.as<std::uint64_t>()).value();
                     }};
    out.push_back(std::move(chosen));
    return out;
}

std::vector<contender> special_shapes() {
    std::vector<contender> out;
    for (std::size_t const length : {8, 16, 32, 64, 256, 4096}) {
        out.push_back(
            segmented("segmented sum, of " + std::to_string(length), cub_segmented_reduce_sum_f64, plus, length));
    }
    out.push_back(bound<std::int32_t>("lower_bound_i32, sorted queries", cub_lower_bound_i32,
                                      lower_bound<std::int32_t>(), sorted_and_sorted_queries<std::int32_t>));
    return out;
}

}  // namespace kiln::bench
