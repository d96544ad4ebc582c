// SPDX-License-Identifier: Apache-2.0
#include "spatial/meeting.hpp"

#include "spatial/kept_elements.hpp"
#include "spatial/pair_lists.cuh"
#include "spatial/path_points.hpp"

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

u64* raw(buffer<std::uint64_t> const& b) { return reinterpret_cast<u64*>(b.data()); }
i64* raw(buffer<std::int64_t> const& b) { return reinterpret_cast<i64*>(b.data()); }

bool may_have_areas(geometries const& g) {
    return g.kind() == family::polygon || g.kind() == family::multipolygon || g.kind() == family::mixed;
}

}  // namespace

result<pair_list> meeting_rows(queue& on, geometries const& left, geometries const& right) {
    if (left.empty() || right.empty()) return pair_list{};
    KILN_TRY(auto const a, kept_layer::plain(on, left));
    KILN_TRY(auto const b, kept_layer::plain(on, right));
    KILN_TRY(auto const elements, kept_elements::make(on, b));
    KILN_TRY(auto const met, find_contacts(on, a, b, elements, rows_wanted::all));
    int const bits = bits_for(right.rows()), all_bits = bits + bits_for(left.rows());
    KILN_TRY(auto met_keys, on.room<std::uint64_t>(met.size()));
    KILN_TRY(auto listed, on.filled<std::int64_t>(1, 0));
    KILN_CHECK(on.launch(
        list_contact_keys{a.view(), b.view(), met.list(), bits, raw(met_keys), reinterpret_cast<u32*>(listed.data())},
        met.size()));
    // Whole paths inside: where their first vertex is.
    pair_list in_b, in_a;
    if (may_have_areas(right)) {
        KILN_TRY(in_b, first_vertices_in(on, a, b, wanted_inside));
    }
    if (may_have_areas(left)) {
        KILN_TRY(in_a, first_vertices_in(on, b, a, wanted_inside));
    }

    std::int64_t total = 0;
    KILN_CHECK(on.read_sync({{listed.data(), total}}));
    auto const mets = static_cast<std::size_t>(total), n = mets + in_b.size() + in_a.size();
    KILN_TRY(auto keys, on.room<std::uint64_t>(n));
    KILN_TRY(auto unused, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(copy_words{reinterpret_cast<u32*>(keys.data()), reinterpret_cast<u32 const*>(met_keys.data())},
                         mets * (sizeof(u64) / sizeof(u32))));
    // Keys hold what is "right" above what is "left".
    KILN_CHECK(
        on.launch(make_pair_keys{{in_b.right.data(), in_b.left.data()}, bits, raw(keys) + mets, unused.data() + mets},
                  in_b.size()));
    auto const behind = mets + in_b.size();
    KILN_CHECK(on.launch(
        make_pair_keys{{in_a.left.data(), in_a.right.data()}, bits, raw(keys) + behind, unused.data() + behind},
        in_a.size()));
    KILN_CHECK(on.sort(keys, unused, all_bits));

    KILN_TRY(auto counts, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_distinct_keys{raw(keys), ~u64{0}, raw(counts)}, n));
    KILN_CHECK(on.sum(counts));
    KILN_CHECK(on.read_sync({{counts.data() + n, total}}));
    pair_list out;
    KILN_TRY(out.left, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_TRY(out.right, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_CHECK(on.launch(take_distinct_keys{raw(keys), raw(counts), bits, out.left.data(), out.right.data()}, n));
    return out;
}

}  // namespace kiln::spatial
