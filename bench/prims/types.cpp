// SPDX-License-Identifier: Apache-2.0
#include "prims/contenders.hpp"
#include "prims/cub_reference.hpp"
#include "prims/tally.hpp"

#include <kiln/prims/handles.hpp>

#include <fmt/format.h>

namespace kiln::bench {

namespace {

constexpr std::size_t segment = 1024;

void random_bits(arena& a, std::size_t n, std::size_t width) {
    a.fill<std::uint64_t>(a.keys, (n * width + 7) / 8, pattern::random);
    a.fill<std::int32_t>(a.values, n, pattern::index);
}
void random_tallies(arena& a, std::size_t n) { random_bits(a, n, sizeof(tally)); }
// Counts ascend, in keys and in queries; what else a tally holds does not matter.
void sorted_tallies(arena& a, std::size_t n) {
    a.fill<std::uint64_t>(a.keys, 2 * n, pattern::quotient, 8);
    a.fill<std::uint64_t>(a.values, 2 * n, pattern::small, n / 4);
}
void runs_of_tallies(arena& a, std::size_t n) {
    a.fill<std::uint64_t>(a.keys, 2 * n, pattern::quotient, 8);
    a.fill<std::int32_t>(a.values, n, pattern::index);
}
void tallies_in_segments(arena& a, std::size_t n) {
    random_tallies(a, n);
    a.fill<std::int32_t>(a.offsets, n / segment + 1, pattern::multiple, segment);
}

planned sort_of(scalar kind, cub_sorted with) {
    auto const key = prims::type_of(kind);
    bool const pairs = with == cub_keys_with_values;
    auto const name = fmt::format("radix_sort_{}{}", name_of(kind), pairs ? "_i32" : "");
    return {name, [=] {
                auto const value = pairs ? prims::type_of(scalar::i32) : element_type{};
                auto h = prims::radix_sort::make(key, value, sort_order::ascending, {}).value();
                return contender{name, cub_sort_first + 2 * static_cast<int>(kind) + static_cast<int>(with),
                                 [width = key.size](arena& a, std::size_t n) { random_bits(a, n, width); },
                                 [h, pairs](arena& a, std::size_t n) {
                                     h.run(a.on, {.keys_in = a.keys.get(),
                                                  .keys_out = a.keys_out.get(),
                                                  .values_in = pairs ? a.values.get() : nullptr,
                                                  .values_out = pairs ? a.values_out.get() : nullptr,
                                                  .n = n})
                                         .value();
                                 }};
            }};
}

device_span<tally const> tallies(arena& a, std::size_t n) { return {a.keys.as<tally>(), n}; }
sort_arguments<tally, std::int32_t> with_values(arena& a, std::size_t n) {
    return {.keys_in = tallies(a, n),
            .keys_out = a.keys_out.as<tally>(),
            .values_in = a.values.as<std::int32_t>(),
            .values_out = a.values_out.as<std::int32_t>()};
}

contender scan_of_tallies() {
    return {"exclusive_scan, struct", cub_scan_record, random_tallies,
            [h = exclusive_scan<tally>(tally_sum()).value()](arena& a, std::size_t n) {
                h(a.on, tallies(a, n), {a.keys_out.as<tally>(), n}).value();
            }};
}
contender reduction_of_tallies() {
    return {"reduce, struct", cub_reduce_record, random_tallies,
            [h = reduce<tally>(tally_sum()).value()](arena& a, std::size_t n) {
                h(a.on, tallies(a, n), a.keys_out.as<tally>()).value();
            }};
}
contender segmented_tallies() {
    return {"segmented_reduce, struct",
            cub_segmented_reduce_record,
            tallies_in_segments,
            [h = segmented_reduce<tally>(tally_sum()).value()](arena& a, std::size_t n) {
                h(a.on, tallies(a, n), device_span<std::int32_t>{a.offsets.as<std::int32_t>(), n / segment + 1},
                  {a.keys_out.as<tally>(), n / segment})
                    .value();
            },
            [](arena& a) -> void const* { return a.offsets.get(); },
            segment};
}
contender chosen_tallies() {
    return {"select_if, struct", cub_select_if_record, random_tallies,
            [h = select_if<tally>(even()).value()](arena& a, std::size_t n) {
                h(a.on, tallies(a, n), a.keys_out.as<tally>(), a.count.as<std::uint64_t>()).value();
            }};
}
contender bounds_of_tallies() {
    return {"lower_bound, struct", cub_lower_bound_record, sorted_tallies,
            [h = lower_bound<tally>(fewer()).value()](arena& a, std::size_t n) {
                h(a.on, tallies(a, n), {a.values.as<tally>(), n},
                  device_span<std::uint32_t>{a.keys_out.as<std::uint32_t>(), n})
                    .value();
            }};
}
contender sorted_by_count() {
    return {"merge_sort, struct and i32", cub_merge_sort_record, random_tallies,
            [h = merge_sort<tally, std::int32_t>(fewer()).value()](arena& a, std::size_t n) {
                h(a.on, with_values(a, n)).value();
            }};
}
contender first_of_each_count() {
    return {"unique_by_key, struct and i32", cub_unique_by_key_record, runs_of_tallies,
            [h = unique_by_key<tally, std::int32_t>(as_many()).value()](arena& a, std::size_t n) {
                h(a.on, with_values(a, n), a.count.as<std::uint64_t>()).value();
            }};
}

}  // namespace

std::vector<planned> every_type() {
    std::vector<planned> out;
    for (auto const kind : {scalar::i8, scalar::u8, scalar::i16, scalar::u16, scalar::i32, scalar::u32, scalar::i64,
                            scalar::u64, scalar::f16, scalar::bf16, scalar::f32, scalar::f64}) {
        for (auto const with : {cub_keys_alone, cub_keys_with_values}) out.push_back(sort_of(kind, with));
    }
    out.push_back({"exclusive_scan, struct", scan_of_tallies});
    out.push_back({"reduce, struct", reduction_of_tallies});
    out.push_back({"segmented_reduce, struct", segmented_tallies});
    out.push_back({"select_if, struct", chosen_tallies});
    out.push_back({"lower_bound, struct", bounds_of_tallies});
    out.push_back({"merge_sort, struct and i32", sorted_by_count});
    out.push_back({"unique_by_key, struct and i32", first_of_each_count});
    return out;
}

}  // namespace kiln::bench
