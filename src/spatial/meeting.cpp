// SPDX-License-Identifier: Apache-2.0
#include "spatial/meeting.hpp"

#include "spatial/near.hpp"
#include "spatial/pair_lists.cuh"
#include "spatial/pairs.hpp"
#include "spatial/path_points.hpp"

namespace kiln::spatial {

using namespace kiln_spatial;

result<meeting_target> meeting_target::make(queue& on, geometries const& right) {
    meeting_target out;
    out.has_areas = spatial::has_areas(right), out.rows = right.rows();
    KILN_TRY(out.layer, kept_layer::plain(on, right));
    KILN_TRY(out.elements, kept_elements::make(on, out.layer));
    return out;
}
result<meeting_target> meeting_target::make_lasting(queue& on, geometries const& right) {
    KILN_TRY(auto out, make(on, right));
    if (out.has_areas) {
        KILN_TRY(out.areas, build_brief_index(on, out.layer));
    }
    return out;
}

result<rows_met> rows_met::make(queue& on, geometries const& left, geometries const& right) {
    if (left.empty() || right.empty()) {
        rows_met out{on};
        out.left_rows_ = left.rows(), out.right_rows_ = right.rows();
        return out;
    }
    KILN_TRY(auto const target, meeting_target::make(on, right));
    return make(on, left, target);
}

result<rows_met> rows_met::make(queue& on, geometries const& left, meeting_target const& right) {
    rows_met out{on};
    out.left_rows_ = left.rows(), out.right_rows_ = right.rows, out.bits_ = bits_for(right.rows);
    if (left.empty()) return out;
    KILN_TRY(auto const a, kept_layer::plain(on, left));
    auto const& b = right.layer;
    KILN_TRY(auto const met, find_contacts(on, a, b, right.elements, rows_wanted::all));
    int const bits = out.bits_, all_bits = bits + bits_for(left.rows());
    KILN_TRY(auto met_keys, on.room<std::uint64_t>(met.size()));
    KILN_TRY(auto listed, on.filled<std::int64_t>(1, 0));
    KILN_CHECK(on.launch(
        list_contact_keys{a.view(), b.view(), met.list(), bits, raw(met_keys), reinterpret_cast<u32*>(listed.data())},
        met.size()));
    // Whole paths inside: where their first vertex is.
    pair_list in_b, in_a;
    if (right.has_areas) {
        KILN_TRY(in_b, right.areas ? first_vertices_in(on, a, *right.areas, wanted_inside)
                                   : first_vertices_in(on, a, b, wanted_inside));
    }
    if (has_areas(left)) {
        KILN_TRY(in_a, first_vertices_in(on, b, a, wanted_inside));
    }

    std::int64_t total = 0;
    KILN_CHECK(on.read_sync({{listed.data(), total}}));
    auto const mets = static_cast<std::size_t>(total), n = mets + in_b.size() + in_a.size();
    KILN_TRY(out.keys_, on.room<std::uint64_t>(n));
    KILN_TRY(auto unused, on.room<std::int32_t>(n));
    auto* const keys = raw(out.keys_);
    KILN_CHECK(on.launch(copy_words{reinterpret_cast<u32*>(keys), reinterpret_cast<u32 const*>(met_keys.data())},
                         mets * (sizeof(u64) / sizeof(u32))));
    // Keys hold what is "right" above what is "left".
    KILN_CHECK(on.launch(make_pair_keys{{in_b.right.data(), in_b.left.data()}, bits, keys + mets, unused.data() + mets},
                         in_b.size()));
    auto const behind = mets + in_b.size();
    KILN_CHECK(
        on.launch(make_pair_keys{{in_a.left.data(), in_a.right.data()}, bits, keys + behind, unused.data() + behind},
                  in_a.size()));
    KILN_CHECK(on.sort(out.keys_, unused, all_bits));
    return out;
}

result<pair_list> rows_met::pairs() {
    auto const n = keys_.size();
    pair_list out;
    if (n == 0) return out;
    KILN_TRY(auto counts, on_->room<std::int64_t>(n + 1));
    KILN_CHECK(on_->launch(count_distinct_keys{raw(keys_), ~u64{0}, raw(counts)}, n));
    KILN_TRY(auto const total, on_->total_sync(counts));
    KILN_TRY(out.left, on_->room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_TRY(out.right, on_->room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_CHECK(on_->launch(take_distinct_keys{raw(keys_), raw(counts), bits_, out.left.data(), out.right.data()}, n));
    return out;
}
result<buffer<std::int32_t>> rows_met::first() {
    KILN_TRY(auto out, on_->filled<std::int32_t>(left_rows_, ~0U));
    KILN_CHECK(on_->launch(first_rights_of_keys{{raw(keys_), bits_}, out.data()}, keys_.size()));
    return out;
}
result<buffer<std::int64_t>> rows_met::count() {
    KILN_TRY(auto out, on_->filled<std::int64_t>(left_rows_, 0));
    KILN_CHECK(on_->launch(count_keys_of_rows{{raw(keys_), bits_}, pair_side::left, counts_in(out)}, keys_.size()));
    return out;
}
result<buffer<std::uint8_t>> rows_met::any() {
    KILN_TRY(auto const counts, count());
    return any_of(*on_, counts);
}
result<buffer<std::int64_t>> rows_met::histogram() {
    KILN_TRY(auto out, on_->filled<std::int64_t>(right_rows_, 0));
    KILN_CHECK(on_->launch(count_keys_of_rows{{raw(keys_), bits_}, pair_side::right, counts_in(out)}, keys_.size()));
    return out;
}

}  // namespace kiln::spatial
