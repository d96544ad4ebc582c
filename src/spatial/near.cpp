// SPDX-License-Identifier: Apache-2.0
//
// Points that want one row each are asked in the order of a Hilbert curve, one thread a point. Everything else in two steps: the least
// square of every left row, then whatever is at it. Rows that lie inside of an area are at no distance from it.
#include "spatial/near.hpp"

#include "spatial/area_index.hpp"
#include "spatial/kept_elements.hpp"
#include "spatial/nearest_many.hpp"
#include "spatial/operations.hpp"
#include "spatial/pairs.hpp"
#include "spatial/path_points.hpp"
#include "spatial/point_distance.cuh"

#include <algorithm>
#include <cmath>

namespace kiln::spatial {

using namespace kiln_spatial;

double greatest_square_within(double distance) {
    double const infinity = std::numeric_limits<double>::infinity();
    double out = distance * distance;
    while (std::sqrt(out) > distance) out = std::nextafter(out, 0.0);
    while (out < infinity && std::sqrt(std::nextafter(out, infinity)) <= distance) out = std::nextafter(out, infinity);
    return out;
}

bool has_areas(geometries const& g) {
    return g.kind() == family::polygon || g.kind() == family::multipolygon || g.kind() == family::mixed;
}

namespace {

class nearest_rows_finder {
public:
    nearest_rows_finder(queue& on, geometries const& left, geometries const& right, near_target const& target,
                        nearest_options const& how)
        : on_{on},
          left_{left},
          right_{right},
          b_{target.layer},
          elements_{target.elements},
          how_{how},
          most_{greatest_square_within(how.most)} {}

    result<near_list> find() {
        if (elements_.tree.size() == 0 || left_.empty()) return near_list{};
        bool const alone = left_.kind() == family::point && how_.equal == ties::by_row && !has_areas(right_);
        return alone ? of_points() : of_rows();
    }

private:
    result<near_list> of_points() {
        auto const n = left_.rows();
        auto const items = elements_.tree.size();
        point_rows const points = point_rows_of(left_);
        KILN_TRY(auto rows, on_.room<std::int32_t>(items));
        KILN_CHECK(on_.launch(rows_in_order{b_.view(), elements_.tree.view().item, rows.data()}, items));
        buffer<std::int32_t> order;
        if (n >= worth_sorting) {
            KILN_TRY(auto keys, on_.room<std::int32_t>(n));
            KILN_TRY(order, on_.room<std::int32_t>(n));
            KILN_CHECK(on_.launch(point_keys{points, elements_.tree.around(), keys.data(), order.data()}, n));
            KILN_CHECK(on_.sort(keys, order));
        }
        KILN_TRY(auto found, on_.room<std::int32_t>(n));
        KILN_TRY(auto distance, on_.room<double>(n));
        KILN_TRY(auto later, on_.room<std::uint32_t>(n));
        KILN_TRY(auto laters, on_.filled<std::uint32_t>(1, 0));
        KILN_TRY(auto without, on_.filled<std::uint64_t>(1, 0));
        nearest_rows const ask{elements_.tree.view(),
                               elements_.in_order.data(),
                               rows.data(),
                               points,
                               order.empty() ? nullptr : order.data(),
                               most_,
                               found.data(),
                               distance.data(),
                               later.data(),
                               laters.data(),
                               raw(without)};
        KILN_CHECK(on_.launch(ask, n));
        auto const threads = std::min(on_.threads(), n);
        KILN_CHECK(on_.launch(nearest_rows_exactly{ask, threads}, threads));

        // Mostly all find one, and the answer is there.
        std::uint64_t lonely = 0;
        KILN_CHECK(on_.read_sync({{without.data(), lonely}}));
        if (lonely == 0) {
            KILN_TRY(auto numbers, on_.room<std::int32_t>(n));
            KILN_CHECK(on_.launch(number_rows{numbers.data()}, n));
            return near_list{numbers, found, distance};
        }
        KILN_TRY(auto counts, on_.room<std::int64_t>(n + 1));
        KILN_CHECK(on_.launch(count_found{found.data(), raw(counts)}, n));
        KILN_CHECK(on_.sum(counts));
        KILN_TRY(auto out, room_for(counts));
        KILN_CHECK(on_.launch(list_found{found.data(), distance.data(), raw(counts), out.left.data(), out.right.data(),
                                         out.distance.data()},
                              n));
        return out;
    }

    result<near_list> of_rows() {
        KILN_TRY(a_, kept_layer::plain(on_, left_));
        KILN_TRY(auto squares, on_.room<std::uint64_t>(left_.rows()));
        KILN_CHECK(on_.launch(set_squares{raw(squares), ordered(most_)}, left_.rows()));
        KILN_TRY(auto const inside, inside_pairs());
        KILN_CHECK(on_.launch(set_no_distance{inside.left.data(), raw(squares)}, inside.size()));

        nearest_question const q{a_.view(), b_.view(), elements_.tree.view(), elements_.in_order.data(), most_};
        auto const n = a_.vertices();
        KILN_TRY(auto later, on_.room<std::uint32_t>(n));
        KILN_TRY(auto laters, on_.filled<std::uint32_t>(1, 0));
        KILN_CHECK(on_.launch(find_least_squares{q, raw(squares), later.data(), laters.data()}, n));
        auto const threads = std::min(on_.threads(), n);
        KILN_CHECK(
            on_.launch(find_least_squares_exactly{q, raw(squares), later.data(), laters.data(), threads}, threads));

        nearest_elements const at{q, raw(squares)};
        KILN_TRY(auto counts, on_.room<std::int64_t>(n + 1));
        KILN_CHECK(on_.launch(count_nearest{at, raw(counts)}, n));
        KILN_CHECK(on_.sum(counts));
        std::int64_t total = 0;
        KILN_CHECK(on_.read_sync({{counts.data() + n, total}}));
        // What touches, and behind it what lies inside.
        auto const touching = static_cast<std::size_t>(total), all = touching + inside.size();
        pair_list pairs;
        KILN_TRY(pairs.left, on_.room<std::int32_t>(all));
        KILN_TRY(pairs.right, on_.room<std::int32_t>(all));
        KILN_CHECK(on_.launch(list_nearest{at, raw(counts), pairs.left.data(), pairs.right.data()}, n));
        auto const behind = [&](buffer<std::int32_t> const& to, buffer<std::int32_t> const& from) {
            return on_.launch(
                copy_words{reinterpret_cast<u32*>(to.data() + touching), reinterpret_cast<u32 const*>(from.data())},
                from.size());
        };
        KILN_CHECK(behind(pairs.left, inside.left));
        KILN_CHECK(behind(pairs.right, inside.right));
        KILN_TRY(auto const sorted, sorted_pairs(on_, pairs, left_.rows(), right_.rows()));
        return distinct(sorted, squares);
    }

    // Rows of which one has a path inside an area of the other, or on its boundary. In any order.
    result<pair_list> inside_pairs() {
        pair_list out;
        std::array<pair_list, 2> found;
        for (int side = 0; side < 2; ++side) {
            auto const& inner = side == 0 ? a_ : b_;
            auto const& areas = side == 0 ? right_ : left_;
            if (!has_areas(areas)) continue;
            KILN_TRY(auto const pairs, first_vertices_in(on_, inner, side == 0 ? b_ : a_, wanted_inside | wanted_on));
            found[static_cast<std::size_t>(side)] = side == 0 ? pairs : pair_list{pairs.right, pairs.left};
        }
        auto const n = found[0].size() + found[1].size();
        KILN_TRY(out.left, on_.room<std::int32_t>(n));
        KILN_TRY(out.right, on_.room<std::int32_t>(n));
        std::size_t at = 0;
        for (auto const& f : found) {
            for (auto const& [to, from] : {std::pair{&out.left, &f.left}, std::pair{&out.right, &f.right}})
                KILN_CHECK(on_.launch(
                    copy_words{reinterpret_cast<u32*>(to->data() + at), reinterpret_cast<u32 const*>(from->data())},
                    f.size()));
            at += f.size();
        }
        return out;
    }

    result<near_list> distinct(pair_list const& sorted, buffer<std::uint64_t> const& squares) {
        auto const n = sorted.size();
        KILN_TRY(auto counts, on_.room<std::int64_t>(n + 1));
        if (how_.equal == ties::kept)
            KILN_CHECK(on_.launch(count_distinct{sorted.left.data(), sorted.right.data(), raw(counts)}, n));
        else KILN_CHECK(on_.launch(count_firsts{sorted.left.data(), raw(counts)}, n));
        KILN_CHECK(on_.sum(counts));
        KILN_TRY(auto out, room_for(counts));
        KILN_CHECK(on_.launch(list_distinct{sorted.left.data(), sorted.right.data(), raw(counts), raw(squares),
                                            out.left.data(), out.right.data(), out.distance.data()},
                              n));
        return out;
    }

    result<near_list> room_for(buffer<std::int64_t> const& summed) {
        std::int64_t total = 0;
        KILN_CHECK(on_.read_sync({{summed.data() + summed.size() - 1, total}}));
        near_list out;
        KILN_TRY(out.left, on_.room<std::int32_t>(static_cast<std::size_t>(total)));
        KILN_TRY(out.right, on_.room<std::int32_t>(static_cast<std::size_t>(total)));
        KILN_TRY(out.distance, on_.room<double>(static_cast<std::size_t>(total)));
        return out;
    }

    queue& on_;
    geometries const& left_;
    geometries const& right_;
    kept_layer const& b_;
    kept_elements const& elements_;
    nearest_options how_;
    double most_;  // a square
    kept_layer a_;
};

}  // namespace

result<near_target> near_target::make(queue& on, geometries const& right) {
    near_target out;
    KILN_TRY(out.layer, kept_layer::plain(on, right));
    KILN_TRY(out.elements, kept_elements::make(on, out.layer));
    return out;
}

result<near_list> nearest_rows_of(queue& on, geometries const& left, geometries const& right, near_target const& target,
                                  nearest_options const& how) {
    return nearest_rows_finder{on, left, right, target, how}.find();
}
result<near_list> nearest_rows_of(queue& on, geometries const& left, geometries const& right,
                                  nearest_options const& how) {
    KILN_TRY(auto const target, near_target::make(on, right));
    return nearest_rows_of(on, left, right, target, how);
}

result<near_list> nearest(stream_ref on, geometries const& left, geometries const& right, nearest_options const& how) {
    if (how.count == 0 || !(how.most >= 0))
        return fail(errc::invalid_argument, "nearest: count {} within {}: at least 1, within a distance of at least 0",
                    how.count, how.most);
    auto const& operation = how.count == 1 ? nearest_operation : nearest_many_operation;
    KILN_TRY(auto const facts, facts_of(operation, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(operation, facts));
    KILN_TRY(auto const a, brought(call, on, left));
    KILN_TRY(auto const b, brought(call, on, right));
    if (call.on_gpu()) {
        device_queue there{on, a.device()};
        return how.count == 1 ? nearest_rows_of(there, a, b, how) : nearest_many_of(there, a, b, how);
    }
    KILN_TRY(auto const pairs, cpu::nearest(a, b, how));
    near_list out{buffer<std::int32_t>::on_host(pairs.size()), buffer<std::int32_t>::on_host(pairs.size()),
                  buffer<double>::on_host(pairs.size())};
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        out.left.data()[i] = pairs[i].left, out.right.data()[i] = pairs[i].right;
        out.distance.data()[i] = pairs[i].distance;
    }
    return out;
}

}  // namespace kiln::spatial
