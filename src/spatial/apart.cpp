// SPDX-License-Identifier: Apache-2.0
#include "spatial/apart.hpp"

#include "spatial/meeting.hpp"
#include "spatial/pair_complement.cuh"
#include "spatial/pair_lists.cuh"
#include "spatial/pairs.hpp"

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

result<buffer<std::int64_t>> ranks_of(queue& on, buffer<std::uint8_t> const& states) {
    KILN_TRY(auto out, on.room<std::int64_t>(states.size() + 1));
    KILN_CHECK(on.launch(count_rows_there{states.data(), raw(out)}, states.size()));
    KILN_CHECK(on.sum(out));
    return out;
}

}  // namespace

result<rows_apart> rows_apart::make(queue& on, geometries const& left, geometries const& right) {
    rows_apart out{on};
    out.left_rows_ = left.rows(), out.right_rows_ = right.rows();
    KILN_TRY(auto met, rows_met::make(on, left, right));
    KILN_TRY(out.met_, met.pairs());
    KILN_TRY(auto const a, kept_layer::plain(on, left));
    KILN_TRY(auto const b, kept_layer::plain(on, right));
    out.left_state_ = a.states(), out.right_state_ = b.states();
    KILN_TRY(out.left_rank_, ranks_of(on, out.left_state_));
    KILN_TRY(out.right_rank_, ranks_of(on, out.right_state_));
    KILN_TRY(out.met_at_, on.filled<std::int64_t>(left.rows() + 1, 0));
    KILN_CHECK(on.launch(
        count_rights{
            {out.met_.left.data(), out.met_.right.data()}, out.met_.size(), reinterpret_cast<u64*>(out.met_at_.data())},
        out.met_.size()));
    KILN_CHECK(on.sum(out.met_at_));
    return out;
}

namespace {

met_rows met_of(buffer<std::uint8_t> const& left, buffer<std::uint8_t> const& right, buffer<std::int64_t> const& at,
                pair_list const& met, buffer<std::int64_t> const& rank) {
    return {left.data(), right.data(), raw(at), met.right.data(), raw(rank), right.size()};
}

}  // namespace

result<void> rows_apart::place_all() {
    if (!place_.empty()) return {};
    KILN_TRY(place_, on_->room<std::int64_t>(left_rows_ + 1));
    KILN_CHECK(on_->launch(count_apart{met_of(left_state_, right_state_, met_at_, met_, right_rank_), raw(place_)},
                           left_rows_));
    return on_->sum(place_);
}

result<pair_list> rows_apart::pairs(std::size_t first, std::size_t last) {
    pair_list out;
    if (first >= last || right_rows_ == 0) return out;
    KILN_CHECK(place_all());
    std::int64_t from = 0, to = 0;
    KILN_CHECK(on_->read_sync({{place_.data() + first, from}, {place_.data() + last, to}}));
    KILN_TRY(out.left, on_->room<std::int32_t>(static_cast<std::size_t>(to - from)));
    KILN_TRY(out.right, on_->room<std::int32_t>(static_cast<std::size_t>(to - from)));
    KILN_CHECK(on_->launch(list_apart{met_of(left_state_, right_state_, met_at_, met_, right_rank_),
                                      raw(place_) + first, static_cast<i32>(first), out.left.data(), out.right.data()},
                           (last - first) * right_rows_));
    return out;
}

result<buffer<std::int32_t>> rows_apart::first() {
    KILN_TRY(auto out, on_->room<std::int32_t>(left_rows_));
    KILN_CHECK(on_->launch(first_apart{met_of(left_state_, right_state_, met_at_, met_, right_rank_), out.data()},
                           left_rows_));
    return out;
}
result<buffer<std::int64_t>> rows_apart::count() {
    KILN_TRY(auto out, on_->room<std::int64_t>(left_rows_));
    KILN_CHECK(
        on_->launch(count_apart{met_of(left_state_, right_state_, met_at_, met_, right_rank_), raw(out)}, left_rows_));
    return out;
}
result<buffer<std::uint8_t>> rows_apart::any() {
    KILN_TRY(auto const counts, count());
    return any_of(*on_, counts);
}
result<buffer<std::int64_t>> rows_apart::histogram() {
    KILN_TRY(auto out, histogram_of(*on_, met_, right_rows_));
    KILN_CHECK(on_->launch(count_left_apart{right_state_.data(), raw(left_rank_) + left_rows_, raw(out)}, right_rows_));
    return out;
}

}  // namespace kiln::spatial
