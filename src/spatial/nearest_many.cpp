// SPDX-License-Identifier: Apache-2.0
#include "spatial/nearest_many.hpp"

#include "spatial/area_index.hpp"
#include "spatial/kept_elements.hpp"
#include "spatial/near.hpp"
#include "spatial/nearest_many.cuh"
#include "spatial/pair_lists.cuh"
#include "spatial/pairs.hpp"
#include "spatial/path_points.hpp"
#include "spatial/point_distance.cuh"
#include "spatial/row_distances.hpp"

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

class many_finder {
public:
    many_finder(queue& on, geometries const& left, geometries const& right, nearest_options const& how)
        : on_{on}, left_{left}, right_{right}, how_{how} {}

    result<near_list> find() {
        if (left_.empty() || right_.empty()) return near_list{};
        KILN_TRY(b_, kept_layer::plain(on_, right_));
        KILN_TRY(elements_, kept_elements::make(on_, b_));
        if (elements_.tree.size() == 0) return near_list{};
        KILN_TRY(a_, kept_search::make(on_, left_));
        KILN_CHECK(find_inside());
        KILN_CHECK(find_lists());
        return how_.equal == ties::kept ? with_equal_rows() : written({question(), nullptr, nullptr}, {});
    }

private:
    // Rows of which one has a path inside an area of the other, or on its boundary: by left, perhaps several times.
    result<void> find_inside() {
        pair_list found[2];
        for (int side = 0; side < 2; ++side) {
            auto const& inner = side == 0 ? a_.layer() : b_;
            if (!has_areas(side == 0 ? right_ : left_)) continue;
            KILN_TRY(auto const index, build_brief_index(on_, side == 0 ? b_ : a_.layer()));
            KILN_TRY(auto const pairs, first_vertices_in(on_, inner, *index, wanted_inside | wanted_on));
            found[side] = side == 0 ? pairs : pair_list{pairs.right, pairs.left};
        }
        auto const n = found[0].size() + found[1].size(), rows = left_.rows();
        pair_list all;
        KILN_TRY(all.left, on_.room<std::int32_t>(n));
        KILN_TRY(all.right, on_.room<std::int32_t>(n));
        std::size_t at = 0;
        for (auto const& f : found) {
            for (auto const& [to, from] : {std::pair{&all.left, &f.left}, std::pair{&all.right, &f.right}})
                KILN_CHECK(on_.launch(
                    copy_words{reinterpret_cast<u32*>(to->data() + at), reinterpret_cast<u32 const*>(from->data())},
                    f.size()));
            at += f.size();
        }
        KILN_TRY(inside_, sorted_pairs(on_, all, rows, right_.rows()));
        KILN_TRY(inside_at_, on_.filled<std::int64_t>(rows + 1, 0));
        KILN_CHECK(on_.launch(count_rights{{inside_.left.data(), inside_.right.data()}, n, counts_in(inside_at_)}, n));
        return on_.sum(inside_at_);
    }

    result<void> find_lists() {
        auto const rows = left_.rows(), items = elements_.tree.size();
        if (how_.count > 0xffffffff / 2)
            return fail(errc::invalid_argument, "nearest: {} rows for each are too many", how_.count);
        most_ = static_cast<std::uint32_t>(std::min(how_.count, right_.rows()));
        KILN_TRY(rows_, on_.room<std::int32_t>(items));
        KILN_CHECK(on_.launch(rows_in_order{b_.view(), elements_.tree.view().item, rows_.data()}, items));
        KILN_TRY(around_, a_.layer().row_boxes(on_));
        if (rows >= worth_sorting) {
            KILN_TRY(order_, order_for(on_, elements_.tree, around_));
        }
        KILN_TRY(square_, on_.room<double>(rows * most_));
        KILN_TRY(row_, on_.room<std::int32_t>(rows * most_));
        KILN_TRY(count_, on_.room<std::uint32_t>(rows));
        KILN_TRY(auto later, on_.room<std::uint32_t>(rows));
        KILN_TRY(auto laters, on_.filled<std::uint32_t>(1, 0));
        auto const threads = std::min(on_.threads(), rows);
        KILN_CHECK(on_.launch(find_best_rows{question(), later.data(), laters.data()}, rows));
        return on_.launch(find_best_rows_exactly{question(), later.data(), laters.data(), threads}, threads);
    }

    result<near_list> with_equal_rows() {
        auto const rows = left_.rows();
        equal_rows const of{question()};
        KILN_TRY(auto equal, on_.room<std::int64_t>(rows + 1));
        KILN_CHECK(on_.launch(count_equal_rows{of, raw(equal)}, rows));
        KILN_CHECK(on_.sum(equal));
        std::int64_t total = 0;
        KILN_CHECK(on_.read_sync({{equal.data() + rows, total}}));
        auto const n = static_cast<std::size_t>(total);
        pair_list all;
        KILN_TRY(all.left, on_.room<std::int32_t>(n));
        KILN_TRY(all.right, on_.room<std::int32_t>(n));
        KILN_CHECK(on_.launch(list_equal_rows{of, raw(equal), all.left.data(), all.right.data()}, rows));
        KILN_TRY(auto const sorted, sorted_pairs(on_, all, rows, right_.rows()));
        KILN_TRY(auto distinct, on_.room<std::int64_t>(n + 1));
        KILN_CHECK(on_.launch(count_distinct_pairs{sorted.left.data(), sorted.right.data(), raw(distinct)}, n));
        KILN_CHECK(on_.sum(distinct));
        return written({of, raw(equal), raw(distinct)}, sorted);
    }

    result<near_list> written(near_places const& of, pair_list const& equal) {
        auto const rows = left_.rows();
        KILN_TRY(auto place, on_.room<std::int64_t>(rows + 1));
        KILN_CHECK(on_.launch(count_near_rows{of, raw(place)}, rows));
        KILN_CHECK(on_.sum(place));
        std::int64_t total = 0;
        KILN_CHECK(on_.read_sync({{place.data() + rows, total}}));
        near_list out;
        KILN_TRY(out.left, on_.room<std::int32_t>(static_cast<std::size_t>(total)));
        KILN_TRY(out.right, on_.room<std::int32_t>(static_cast<std::size_t>(total)));
        KILN_TRY(out.distance, on_.room<double>(static_cast<std::size_t>(total)));
        KILN_CHECK(
            on_.launch(list_near_rows{of, raw(place), out.left.data(), out.right.data(), out.distance.data()}, rows));
        KILN_CHECK(on_.launch(list_last_rows{of, equal.left.data(), equal.right.data(), raw(place), out.left.data(),
                                             out.right.data(), out.distance.data()},
                              equal.size()));
        return out;
    }

    many_question question() const {
        return {a_.view(),
                around_.data(),
                order_.empty() ? nullptr : order_.data(),
                elements_.tree.view(),
                elements_.in_order.data(),
                rows_.data(),
                raw(inside_at_),
                inside_.right.data(),
                greatest_square_within(how_.most),
                most_,
                square_.data(),
                row_.data(),
                count_.data()};
    }

    queue& on_;
    geometries const& left_;
    geometries const& right_;
    nearest_options how_;
    std::uint32_t most_ = 1;
    kept_search a_;
    kept_layer b_;
    kept_elements elements_;
    pair_list inside_;
    buffer<std::int64_t> inside_at_;
    buffer<box> around_;
    buffer<std::int32_t> order_, rows_, row_;
    buffer<double> square_;
    buffer<std::uint32_t> count_;
};

}  // namespace

result<near_list> nearest_many_of(queue& on, geometries const& left, geometries const& right,
                                  nearest_options const& how) {
    return many_finder{on, left, right, how}.find();
}

}  // namespace kiln::spatial
