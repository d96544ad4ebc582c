// SPDX-License-Identifier: Apache-2.0
#include "spatial/pairs.hpp"

#include "spatial/pair_lists.cuh"

namespace kiln::spatial {

using namespace kiln_spatial;

result<pair_list> sorted_pairs(queue& on, pair_list const& pairs, std::size_t left_rows, std::size_t right_rows) {
    int const bits = bits_for(right_rows);
    KILN_TRY(auto key, on.room<std::uint64_t>(pairs.size()));
    KILN_TRY(auto unused, on.room<std::int32_t>(pairs.size()));
    // Keys hold what is "right" above what is "left": here the other way round.
    KILN_CHECK(on.launch(
        make_pair_keys{
            {pairs.right.data(), pairs.left.data()}, bits, reinterpret_cast<u64*>(key.data()), unused.data()},
        pairs.size()));
    KILN_CHECK(on.sort(key, unused, bits + bits_for(left_rows)));
    pair_list out;
    KILN_TRY(out.left, on.room<std::int32_t>(pairs.size()));
    KILN_TRY(out.right, on.room<std::int32_t>(pairs.size()));
    KILN_CHECK(
        on.launch(take_pair_keys{reinterpret_cast<u64 const*>(key.data()), bits, out.left.data(), out.right.data()},
                  pairs.size()));
    return out;
}

result<pair_list> counted_pairs(queue& on, pair_list const& pairs, buffer<std::int64_t> const& counts) {
    auto const n = pairs.size();
    KILN_TRY(auto const total, on.total_sync(counts));
    pair_list out;
    KILN_TRY(out.left, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_TRY(out.right, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_CHECK(on.launch(
        list_counted_pairs{{pairs.left.data(), pairs.right.data()}, raw(counts), out.left.data(), out.right.data()},
        n));
    return out;
}
result<buffer<std::uint8_t>> any_of(queue& on, buffer<std::int64_t> const& counts) {
    KILN_TRY(auto out, on.room<std::uint8_t>(counts.size()));
    KILN_CHECK(on.launch(any_counted{raw(counts), out.data()}, counts.size()));
    return out;
}

result<buffer<std::int32_t>> firsts_of(queue& on, pair_list const& pairs, std::size_t left_rows) {
    KILN_TRY(auto out, on.filled<std::int32_t>(left_rows, ~0U));
    KILN_CHECK(on.launch(first_rights{{pairs.left.data(), pairs.right.data()}, out.data()}, pairs.size()));
    return out;
}
result<buffer<std::uint8_t>> any_of(queue& on, pair_list const& pairs, std::size_t left_rows) {
    KILN_TRY(auto const first, firsts_of(on, pairs, left_rows));
    KILN_TRY(auto out, on.room<std::uint8_t>(left_rows));
    KILN_CHECK(on.launch(any_rights{first.data(), out.data()}, left_rows));
    return out;
}
result<buffer<std::int64_t>> counts_of(queue& on, pair_list const& pairs, std::size_t left_rows) {
    KILN_TRY(auto out, on.filled<std::int64_t>(left_rows, 0));
    KILN_CHECK(
        on.launch(count_rights{{pairs.left.data(), pairs.right.data()}, pairs.size(), counts_in(out)}, pairs.size()));
    return out;
}
result<buffer<std::int64_t>> histogram_of(queue& on, pair_list const& pairs, std::size_t right_rows) {
    KILN_TRY(auto out, on.filled<std::int64_t>(right_rows, 0));
    KILN_CHECK(on.launch(count_lefts{{pairs.left.data(), pairs.right.data()}, counts_in(out)}, pairs.size()));
    return out;
}

}  // namespace kiln::spatial
