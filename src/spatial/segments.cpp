// SPDX-License-Identifier: Apache-2.0
#include "spatial/segments.hpp"

#include "spatial/kept_elements.hpp"
#include "spatial/operations.hpp"

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// In the order of their elements, without those that turned out to be none.
struct ordered_contacts {
    std::size_t count;
    buffer<std::int32_t> numbers;  // empty: they are so already
};
result<ordered_contacts> real_contacts(queue& on, kept_layer const& a, contacts const& met) {
    auto const n = met.size();
    std::uint64_t aparts = 0;
    KILN_CHECK(on.read_sync({{met.aparts.data(), aparts}}));
    ordered_contacts out{n - static_cast<std::size_t>(aparts), {}};
    if (met.in_order && aparts == 0) return out;
    KILN_TRY(auto keys, on.room<std::uint64_t>(n));
    KILN_TRY(out.numbers, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(element_keys{met.list(), raw(keys), out.numbers.data()}, n));
    KILN_CHECK(on.sort(keys, out.numbers, 33 + bits_for(a.vertices())));
    return out;
}

}  // namespace

result<segment_list> meeting_segments(queue& on, geometries const& left, geometries const& right) {
    segment_list out;
    if (left.empty() || right.empty()) return out;
    KILN_TRY(auto const a, kept_layer::plain(on, left));
    KILN_TRY(auto const b, kept_layer::plain(on, right));
    KILN_TRY(auto const elements, kept_elements::make(on, b));
    KILN_TRY(auto const met, find_contacts(on, a, b, elements, rows_wanted::all));
    if (met.size() == 0) return out;
    KILN_TRY(auto const kept, real_contacts(on, a, met));
    auto const real = kept.count;
    auto const* const numbers = kept.numbers.empty() ? nullptr : kept.numbers.data();
    KILN_TRY(out.left, on.room<std::int32_t>(real));
    KILN_TRY(out.right, on.room<std::int32_t>(real));
    KILN_TRY(out.how, on.room<meeting>(real));
    KILN_TRY(out.x, on.room<double>(real));
    KILN_TRY(out.y, on.room<double>(real));
    KILN_CHECK(on.launch(contact_rows{a.view(), b.view(), met.list(), numbers, out.left.data(), out.right.data(),
                                      reinterpret_cast<u8*>(out.how.data())},
                         real));
    KILN_CHECK(on.launch(place_contacts{a.view(), b.view(), met.list(), numbers, out.x.data(), out.y.data()}, real));
    return out;
}

result<segment_list> segment_intersections(stream_ref on, geometries const& left, geometries const& right) {
    return with_operands(segments_operation, on, left, right,
                         [](queue& q, geometries const& a, geometries const& b) { return meeting_segments(q, a, b); });
}

}  // namespace kiln::spatial
