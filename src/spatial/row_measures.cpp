// SPDX-License-Identifier: Apache-2.0
#include "spatial/row_measures.hpp"

#include "spatial/geometry_layers.cuh"
#include "spatial/measures.cuh"
#include "spatial/operations.hpp"

namespace kiln::spatial {

using namespace kiln_spatial;

result<void> require_numbered(std::string_view who, std::size_t keys, std::size_t rows) {
    constexpr std::size_t always = std::size_t{1} << 20, for_each_row = 64;
    if (keys <= 0x7fffffff && keys <= std::max(always, for_each_row * rows)) return {};
    return fail(errc::invalid_argument,
                "{}: {} keys for {} rows, and each key is a row of the result: number those that occur from 0", who,
                keys, rows);
}

result<row_measures> row_measures::make(queue& on, geometries const& of) {
    row_measures out{on};
    KILN_TRY(out.layer_, kept_layer::plain(on, of));
    return out;
}

result<box_list> row_measures::columns_of(buffer<box> const& boxes) const {
    box_list out;
    for (auto* column : {&out.min_x, &out.min_y, &out.max_x, &out.max_y}) {
        KILN_TRY(*column, on_->room<double>(boxes.size()));
    }
    KILN_CHECK(
        on_->launch(box_columns{boxes.data(), out.min_x.data(), out.min_y.data(), out.max_x.data(), out.max_y.data()},
                    boxes.size()));
    return out;
}

result<box_list> row_measures::bounds() const {
    KILN_TRY(auto const boxes, layer_.row_boxes(*on_));
    return columns_of(boxes);
}

result<box_list> row_measures::bounds_by_key(buffer<std::int32_t> const& key, std::size_t keys) const {
    KILN_TRY(auto const boxes, layer_.row_boxes(*on_));
    KILN_TRY(auto least, on_->filled<std::uint64_t>(keys * 4, ~0U));
    auto* const around = reinterpret_cast<u64*>(least.data());
    KILN_CHECK(on_->launch(boxes_by_key{boxes.data(), key.data(), keys, around}, boxes.size()));
    KILN_TRY(auto by_key, on_->room<box>(keys));
    KILN_CHECK(on_->launch(kiln_spatial::row_boxes{around, by_key.data()}, keys));
    return columns_of(by_key);
}

result<std::optional<bounding_box>> row_measures::total_bounds_sync() const {
    if (layer_.vertices() == 0) return std::optional<bounding_box>{};
    KILN_TRY(auto const all, layer_.bounds(*on_, all_kinds));
    if (!(all.min_x <= all.max_x)) return std::optional<bounding_box>{};
    return std::optional{
        bounding_box{add(all.min_x, 0.0), add(all.min_y, 0.0), add(all.max_x, 0.0), add(all.max_y, 0.0)}};
}

result<buffer<double>> row_measures::area() const {
    auto const l = layer_.view();
    KILN_TRY(auto rings, on_->room<moments>(layer_.vertices() / run_vertices + layer_.paths() + 1));
    KILN_CHECK(on_->launch(make_ring_runs{l, rings.data()}, layer_.vertices()));
    KILN_TRY(auto out, on_->room<double>(layer_.rows()));
    KILN_CHECK(on_->launch(areas_of_rows{{l, layer_.states().data(), rings.data(), nullptr, nullptr}, out.data()},
                           layer_.rows()));
    return out;
}

result<buffer<double>> row_measures::length() const {
    auto const l = layer_.view();
    KILN_TRY(auto lines, on_->room<moments>(layer_.vertices() / run_vertices + layer_.rows() + 1));
    KILN_CHECK(on_->launch(make_row_runs<row_runs::lines>{l, lines.data()}, layer_.vertices()));
    KILN_TRY(auto out, on_->room<double>(layer_.rows()));
    KILN_CHECK(on_->launch(lengths_of_rows{{l, layer_.states().data(), nullptr, lines.data(), nullptr}, out.data()},
                           layer_.rows()));
    return out;
}

result<location_list> row_measures::centroid() const {
    auto const l = layer_.view();
    auto const n = layer_.vertices(), by_row = n / run_vertices + layer_.rows() + 1;
    KILN_TRY(auto rings, on_->room<moments>(n / run_vertices + layer_.paths() + 1));
    KILN_TRY(auto lines, on_->room<moments>(by_row));
    KILN_TRY(auto points, on_->room<moments>(by_row));
    KILN_CHECK(on_->launch(make_ring_runs{l, rings.data()}, n));
    KILN_CHECK(on_->launch(make_row_runs<row_runs::lines>{l, lines.data()}, n));
    KILN_CHECK(on_->launch(make_row_runs<row_runs::points>{l, points.data()}, n));
    location_list out;
    KILN_TRY(out.x, on_->room<double>(layer_.rows()));
    KILN_TRY(out.y, on_->room<double>(layer_.rows()));
    KILN_CHECK(on_->launch(
        centroids_of_rows{
            {l, layer_.states().data(), rings.data(), lines.data(), points.data()}, out.x.data(), out.y.data()},
        layer_.rows()));
    return out;
}

result<count_list> row_measures::counts() const {
    count_list out;
    KILN_TRY(out.vertices, on_->room<std::int32_t>(layer_.rows()));
    KILN_TRY(out.paths, on_->room<std::int32_t>(layer_.rows()));
    KILN_CHECK(on_->launch(counts_of_rows{layer_.view(), layer_.states().data(), out.vertices.data(), out.paths.data()},
                           layer_.rows()));
    return out;
}

namespace {

// Asks the rows where the call runs.
template <class Ask>
auto measured(operation const& what, stream_ref on, geometries const& of, Ask const& ask)
    -> decltype(ask(std::declval<row_measures const&>())) {
    KILN_TRY(auto const call, runtime::operation_call::begin(what, facts_of(of)));
    KILN_TRY(auto const here, brought(call, on, of));
    return with_queue(call.on_gpu(), on, here.device(), [&](queue& q) -> decltype(ask(std::declval<row_measures&>())) {
        KILN_TRY(auto const rows, row_measures::make(q, here));
        return ask(rows);
    });
}

}  // namespace

result<box_list> bounds(stream_ref on, geometries const& of) {
    return measured(bounds_operation, on, of, [](row_measures const& m) { return m.bounds(); });
}
result<box_list> bounds_by_key(stream_ref on, geometries const& of, buffer<std::int32_t> const& key, std::size_t keys) {
    if (key.size() != of.rows())
        return fail(errc::invalid_argument, "bounds: {} keys of {} rows", key.size(), of.rows());
    KILN_CHECK(require_numbered("bounds", keys, of.rows()));
    if (!key.empty() && on_device(key.where()) != on_device(of.where()))
        return fail(errc::invalid_argument, "bounds: the keys are not where the geometries are; move one of them");
    KILN_TRY(auto const call, runtime::operation_call::begin(bounds_operation, facts_of(of)));
    KILN_TRY(auto const here, brought(call, on, of));
    runtime::brought<std::int32_t> const own{call, on, key};
    if (!own) return own.why();
    return with_queue(call.on_gpu(), on, here.device(), [&](queue& q) -> result<box_list> {
        KILN_TRY(auto const rows, row_measures::make(q, here));
        return rows.bounds_by_key(*own, keys);
    });
}
result<std::optional<bounding_box>> total_bounds_sync(stream_ref on, geometries const& of) {
    return measured(bounds_operation, on, of, [](row_measures const& m) { return m.total_bounds_sync(); });
}
result<buffer<double>> area(stream_ref on, geometries const& of) {
    return measured(measures_operation, on, of, [](row_measures const& m) { return m.area(); });
}
result<buffer<double>> length(stream_ref on, geometries const& of) {
    return measured(measures_operation, on, of, [](row_measures const& m) { return m.length(); });
}
result<location_list> centroid(stream_ref on, geometries const& of) {
    return measured(measures_operation, on, of, [](row_measures const& m) { return m.centroid(); });
}
result<count_list> counts(stream_ref on, geometries const& of) {
    return measured(measures_operation, on, of, [](row_measures const& m) { return m.counts(); });
}

}  // namespace kiln::spatial
