// SPDX-License-Identifier: Apache-2.0
// The operations of the spatial pack on arrays of geometries. Each runs without the interpreter's lock, where Kiln decides, and gives
// arrays that stay where it ran. Arrays on a device are ordered on the default stream; a stream that is named comes in
// between.
#include "arrays.hpp"
#include "device_array.hpp"
#include "gil.hpp"
#include "module.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/buffers.hpp>
#include <kiln/spatial/choose.hpp>
#include <kiln/spatial/files.hpp>
#include <kiln/spatial/join.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/outlines.hpp>
#include <kiln/spatial/overlay.hpp>
#include <kiln/spatial/query.hpp>
#include <kiln/spatial/segments.hpp>
#include <kiln/spatial/shapes.hpp>
#include <kiln/spatial/simplify.hpp>

namespace kiln::python {

namespace {

using namespace spatial;

predicate predicate_by_name(std::string const& name) {
    std::string known;
    for (int i = 0; i <= static_cast<int>(predicate::equals); ++i) {
        auto const what = static_cast<predicate>(i);
        if (name == spatial::name_of(what)) return what;
        known += (known.empty() ? "" : ", ") + std::string{spatial::name_of(what)};
    }
    throw error{errc::invalid_argument, "there is no relation '" + name + "'; there are " + known};
}

constexpr auto last_overlay = static_cast<int>(overlay_kind::update);

overlay_kind overlay_by_name(std::string const& name) {
    if (auto const what = overlay_kind_of(name)) return *what;
    std::string known;
    for (int i = 0; i <= last_overlay; ++i) known += (i == 0 ? "" : ", ") + std::string{spatial::name_of(static_cast<overlay_kind>(i))};
    throw error{errc::invalid_argument, "there is no overlay '" + name + "'; there are " + known};
}

// Whatever kiln.spatial.geometries() takes.
geometries rows_of(nb::handle given) {
    if (nb::isinstance<geometries>(given)) return nb::cast<geometries>(given);
    return nb::cast<geometries>(nb::module_::import_("kiln.spatial").attr("geometries")(given));
}

// What every operation is told beside its operands.
struct manner {
    std::optional<CUstream_st*> stream;
    int device = 0;
    seconds timeout;
};
bool may_use_a_gpu(geometries const& first) {
    if (on_device(first.where())) return true;
    if (requested_mode() != execution_mode::automatic) return requested_mode() == execution_mode::gpu;
    without_gil const unlocked;
    return usable_gpu().has_value();
}
manner manner_of(geometries const& first, nb::handle stream, seconds timeout) {
    manner out{.stream = {}, .device = first.device(), .timeout = timeout};
    if (!stream.is_none()) out.stream = stream_of(stream);
    // What runs on the CPU needs no compiler to be waited for, and no stream to be ordered.
    if ((timeout || out.stream) && !may_use_a_gpu(first)) out.timeout = std::nullopt, out.stream = std::nullopt;
    return out;
}

// `work(stream)` holds all that it uses: it goes on if the caller leaves.
template <class Work>
auto ran(manner const& how, Work work) {
    auto const all = [on = how.stream, device = how.device, work = std::move(work)]() -> decltype(work(stream_ref{})) {
        if (!on) return work(default_stream);
        order(device, default_stream, *on);
        auto out = work(stream_ref{*on});
        order(device, *on, default_stream);
        return out;
    };
    return in_background(how.timeout, all).value();
}

template <class T>
device_array out_of(buffer<T> const& from) { return array_of(from); }
nb::tuple out_of(pair_list const& p) { return nb::make_tuple(array_of(p.left), array_of(p.right)); }
nb::tuple out_of(near_list const& p) { return nb::make_tuple(array_of(p.left), array_of(p.right), array_of(p.distance)); }
nb::tuple out_of(matrix_list const& p) { return nb::make_tuple(array_of(p.left), array_of(p.right), array_of(p.bits)); }
nb::tuple out_of(segment_list const& p) { return nb::make_tuple(array_of(p.left), array_of(p.right), array_of(p.how), array_of(p.x), array_of(p.y)); }
nb::tuple out_of(box_list const& b) { return nb::make_tuple(array_of(b.min_x), array_of(b.min_y), array_of(b.max_x), array_of(b.max_y)); }
nb::tuple out_of(overlay_rows const& o) { return nb::make_tuple(o.rows, array_of(o.left), array_of(o.right)); }
nb::tuple out_of(area_list const& a) { return nb::make_tuple(array_of(a.left), array_of(a.right), array_of(a.area)); }
geometries out_of(geometries rows) { return rows; }
nb::tuple out_of(location_list const& l) { return nb::make_tuple(array_of(l.x), array_of(l.y)); }
nb::tuple out_of(count_list const& c) { return nb::make_tuple(array_of(c.vertices), array_of(c.paths)); }
std::optional<std::tuple<double, double, double, double>> out_of(std::optional<bounding_box> const& b) {
    if (!b) return std::nullopt;
    return std::tuple{b->min_x, b->min_y, b->max_x, b->max_y};
}

// Of one array, of two, and of two with a relation; the right one may be an index.
template <class Work>
void def_of_one(nb::module_& m, char const* name, Work work) {
    m.def(name, [work](geometries const& of, nb::handle stream, seconds timeout) {
        return out_of(ran(manner_of(of, stream, timeout), [=](stream_ref on) { return work(on, of); }));
    }, nb::arg("of"), nb::arg("stream").none(), nb::arg("timeout").none());
}
template <class Work>
void def_of_two(nb::module_& m, char const* name, Work work) {
    m.def(name, [work](geometries const& left, geometries const& right, nb::handle stream, seconds timeout) {
        return out_of(ran(manner_of(left, stream, timeout), [=](stream_ref on) { return work(on, left, right); }));
    }, nb::arg("left"), nb::arg("right"), nb::arg("stream").none(), nb::arg("timeout").none());
}
template <class Work>
void def_join(nb::module_& m, char const* name, Work work) {
    auto const with = [&]<class Right>(std::type_identity<Right>) {
        m.def(name, [work](geometries const& left, Right const& right, std::string const& relation, nb::handle stream, seconds timeout) {
            auto const what = predicate_by_name(relation);
            return out_of(ran(manner_of(left, stream, timeout), [=](stream_ref on) { return work(on, left, right, what); }));
        }, nb::arg("left"), nb::arg("right"), nb::arg("relation"), nb::arg("stream").none(), nb::arg("timeout").none());
    };
    with(std::type_identity<geometries>{}), with(std::type_identity<area_index>{});
}

// One of an enumeration by its name, in its order.
template <class T>
T named(std::string_view what, std::string const& name, std::initializer_list<std::string_view> names) {
    int number = 0;
    std::string all;
    for (auto const known : names) {
        if (name == known) return static_cast<T>(number);
        all += (number++ == 0 ? "" : ", ") + std::string{known};
    }
    throw error{errc::invalid_argument, "buffer: " + std::string{what} + " is '" + name + "'; it is one of " + all};
}

// Parts of a list, as they come. The thread that asks is the one that is called back.
void in_chunks(geometries const& left, geometries const& right, std::string const& relation, std::optional<double> distance, nb::callable take,
               std::size_t most_bytes) {
    auto const what = distance ? predicate::intersects : predicate_by_name(relation);
    std::optional<nb::python_error> thrown;
    auto const one = [&](pair_list const& pairs) -> result<void> {
        with_gil const locked;
        try {
            take(array_of(pairs.left), array_of(pairs.right));
            return {};
        } catch (nb::python_error& e) {
            thrown.emplace(std::move(e));
            return error{errc::cancelled, "the caller has enough"};
        }
    };
    chunk_options const how{.most_bytes = most_bytes};
    auto const done = [&] {
        without_gil const unlocked;
        return distance ? join_within_in_chunks(default_stream, left, right, *distance, how, one) : join_in_chunks(default_stream, left, right, what, how, one);
    }();
    if (thrown) throw std::move(*thrown);
    done.value();
}

}  // namespace

void bind_spatial(nb::module_& m) {
    nb::class_<area_index>(m, "AreaIndex", nb::is_weak_referenceable(), "Which areas a point is in: built once, asked often, in constant time per point.")
        .def(nb::new_([](nb::handle given, nb::handle stream, seconds timeout) {
            auto const areas = rows_of(given);
            return ran(manner_of(areas, stream, timeout), [=](stream_ref on) { return area_index::make(on, areas); });
        }), nb::arg("areas"), nb::arg("stream") = nb::none(), nb::arg("timeout") = nb::none())
        .def("__len__", &area_index::rows)
        .def("__reduce__", [](area_index const&) -> nb::tuple { throw nb::type_error("an AreaIndex is not copied or pickled: build it again of the areas, which can be"); })
        .def_prop_ro("nbytes", &area_index::bytes)
        .def_prop_ro("ordinal", [](area_index const& i) { return on_device(i.where()) ? i.device() : -1; })
        .def("__repr__", [](area_index const& i) { return "<kiln.spatial.AreaIndex of " + std::to_string(i.rows()) + " areas>"; });

    def_join(m, "spatial_join", [](stream_ref on, geometries const& l, auto const& r, predicate what) { return join(on, l, r, what); });
    def_join(m, "spatial_join_first", [](stream_ref on, geometries const& l, auto const& r, predicate what) { return join_first(on, l, r, what); });
    def_join(m, "spatial_join_count", [](stream_ref on, geometries const& l, auto const& r, predicate what) { return join_count(on, l, r, what); });
    def_join(m, "spatial_join_any", [](stream_ref on, geometries const& l, auto const& r, predicate what) { return join_any(on, l, r, what); });
    def_join(m, "spatial_join_histogram", [](stream_ref on, geometries const& l, auto const& r, predicate what) { return join_histogram(on, l, r, what); });
    def_of_two(m, "spatial_relate", [](stream_ref on, geometries const& l, geometries const& r) { return relate(on, l, r); });
    def_of_two(m, "spatial_relate_join", [](stream_ref on, geometries const& l, geometries const& r) { return relate_join(on, l, r); });
    def_of_two(m, "spatial_distance", [](stream_ref on, geometries const& l, geometries const& r) { return distance(on, l, r); });
    def_of_two(m, "spatial_segment_intersections", [](stream_ref on, geometries const& l, geometries const& r) { return segment_intersections(on, l, r); });
    def_of_two(m, "spatial_area_table", [](stream_ref on, geometries const& l, geometries const& r) { return area_table(on, l, r); });
    def_of_two(m, "spatial_intersection_area", [](stream_ref on, geometries const& l, geometries const& r) { return intersection_area(on, l, r); });
    def_of_two(m, "spatial_iou", [](stream_ref on, geometries const& l, geometries const& r) { return iou(on, l, r); });
    def_of_one(m, "spatial_union_all", [](stream_ref on, geometries const& g) { return union_all(on, g); });
    def_of_one(m, "spatial_make_valid", [](stream_ref on, geometries const& g) { return make_valid(on, g); });
    def_of_one(m, "spatial_is_valid", [](stream_ref on, geometries const& g) { return is_valid(on, g); });
    def_of_one(m, "spatial_convex_hull", [](stream_ref on, geometries const& g) { return convex_hull(on, g); });
    def_of_one(m, "spatial_envelope", [](stream_ref on, geometries const& g) { return envelope(on, g); });
    def_of_one(m, "spatial_boundary", [](stream_ref on, geometries const& g) { return boundary(on, g); });
    def_of_one(m, "spatial_point_on_surface", [](stream_ref on, geometries const& g) { return point_on_surface(on, g); });
    def_of_two(m, "spatial_clip_by_areas", [](stream_ref on, geometries const& l, geometries const& r) { return clip(on, l, r); });
    def_of_one(m, "spatial_bounds", [](stream_ref on, geometries const& g) { return bounds(on, g); });
    def_of_one(m, "spatial_total_bounds", [](stream_ref on, geometries const& g) { return total_bounds_sync(on, g); });
    def_of_one(m, "spatial_area", [](stream_ref on, geometries const& g) { return area(on, g); });
    def_of_one(m, "spatial_length", [](stream_ref on, geometries const& g) { return length(on, g); });
    def_of_one(m, "spatial_centroid", [](stream_ref on, geometries const& g) { return centroid(on, g); });
    def_of_one(m, "spatial_counts", [](stream_ref on, geometries const& g) { return counts(on, g); });

    m.def("spatial_join_within", [](geometries const& left, geometries const& right, double most, nb::handle stream, seconds timeout) {
        return out_of(ran(manner_of(left, stream, timeout), [=](stream_ref on) { return join_within(on, left, right, most); }));
    }, nb::arg("left"), nb::arg("right"), nb::arg("distance"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_query", [](geometries const& left, geometries const& right, double most, nb::handle stream, seconds timeout) {
        return out_of(ran(manner_of(left, stream, timeout), [=](stream_ref on) { return query(on, left, right, {.distance = most}); }));
    }, nb::arg("left"), nb::arg("right"), nb::arg("distance"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_nearest", [](geometries const& left, geometries const& right, std::size_t count, std::optional<double> most, bool all_ties, nb::handle stream, seconds timeout) {
        nearest_options how{.count = count, .equal = all_ties ? ties::kept : ties::by_row};
        if (most) how.most = *most;
        return out_of(ran(manner_of(left, stream, timeout), [=](stream_ref on) { return nearest(on, left, right, how); }));
    }, nb::arg("left"), nb::arg("right"), nb::arg("count"), nb::arg("most").none(), nb::arg("ties"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_join_in_chunks", &in_chunks, nb::arg("left"), nb::arg("right"), nb::arg("relation"), nb::arg("distance").none(), nb::arg("take"), nb::arg("most_bytes"));
    m.def("spatial_bounds_by_key", [](geometries const& of, nb::handle key, std::size_t keys, nb::handle stream, seconds timeout) {
        auto const by = borrowed<std::int32_t>(key, "key");
        return out_of(ran(manner_of(of, stream, timeout), [=](stream_ref on) { return bounds_by_key(on, of, by, keys); }));
    }, nb::arg("of"), nb::arg("key"), nb::arg("keys"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_overlay", [](geometries const& left, geometries const& right, std::string const& how, double grid, nb::handle stream, seconds timeout) {
        auto const what = overlay_by_name(how);
        return out_of(ran(manner_of(left, stream, timeout), [=](stream_ref on) { return overlay(on, left, right, what, {.grid = grid}); }));
    }, nb::arg("left"), nb::arg("right"), nb::arg("how"), nb::arg("grid"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_overlay_row_by_row", [](geometries const& left, geometries const& right, std::string const& how, double grid, nb::handle stream, seconds timeout) {
        auto const what = overlay_by_name(how);
        return ran(manner_of(left, stream, timeout), [=](stream_ref on) { return overlay_row_by_row(on, left, right, what, {.grid = grid}); });
    }, nb::arg("left"), nb::arg("right"), nb::arg("how"), nb::arg("grid"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_dissolve", [](geometries const& of, nb::handle key, std::size_t keys, nb::handle stream, seconds timeout) {
        auto const by = borrowed<std::int32_t>(key, "key");
        return ran(manner_of(of, stream, timeout), [=](stream_ref on) { return dissolve(on, of, by, keys); });
    }, nb::arg("of"), nb::arg("key"), nb::arg("keys"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_overlays", [] {
        std::vector<std::string> out;
        for (int i = 0; i <= last_overlay; ++i) out.emplace_back(spatial::name_of(static_cast<overlay_kind>(i)));
        return out;
    });
    m.def("spatial_gather", [](geometries const& from, nb::handle rows, nb::handle stream, seconds timeout) {
        auto const which = borrowed<std::int32_t>(rows, "which");
        return ran(manner_of(from, stream, timeout), [=](stream_ref on) { return gather(on, from, which); });
    }, nb::arg("rows_of"), nb::arg("rows"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_filter", [](geometries const& from, nb::handle keep, nb::handle stream, seconds timeout) {
        auto const flags = borrowed<std::uint8_t>(keep, "keep");
        return ran(manner_of(from, stream, timeout), [=](stream_ref on) { return filter_sync(on, from, flags); });
    }, nb::arg("rows_of"), nb::arg("keep"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_point_buffer", [](geometries const& of, double distance, int quarter, nb::handle stream, seconds timeout) {
        return ran(manner_of(of, stream, timeout), [=](stream_ref on) { return point_buffer(on, of, distance, {.quarter = quarter}); });
    }, nb::arg("of"), nb::arg("distance"), nb::arg("quarter"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_buffer", [](geometries const& of, double distance, int quarter, std::string const& caps, std::string const& joins, double mitre_limit, nb::handle stream, seconds timeout) {
        buffer_options const how{.quarter = quarter,
                                 .caps = named<cap_style>("caps", caps, {"round", "flat", "square"}),
                                 .joins = named<join_style>("joins", joins, {"round", "mitre", "bevel"}),
                                 .mitre_limit = mitre_limit};
        return ran(manner_of(of, stream, timeout), [=](stream_ref on) { return buffer_of(on, of, distance, how); });
    }, nb::arg("of"), nb::arg("distance"), nb::arg("quarter"), nb::arg("caps"), nb::arg("joins"), nb::arg("mitre_limit"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_simplify", [](geometries const& of, double tolerance, nb::handle stream, seconds timeout) {
        return ran(manner_of(of, stream, timeout), [=](stream_ref on) { return simplify(on, of, tolerance); });
    }, nb::arg("of"), nb::arg("tolerance"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_simplify_coverage", [](geometries const& areas, double tolerance, nb::handle stream, seconds timeout) {
        return ran(manner_of(areas, stream, timeout), [=](stream_ref on) { return simplify_coverage(on, areas, tolerance); });
    }, nb::arg("areas"), nb::arg("tolerance"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_clip", [](geometries const& of, std::tuple<double, double, double, double> const& box, nb::handle stream, seconds timeout) {
        auto const& [left, bottom, right, top] = box;
        bounding_box const to{left, bottom, right, top};
        return ran(manner_of(of, stream, timeout), [=](stream_ref on) { return clip_by_rect(on, of, to); });
    }, nb::arg("of"), nb::arg("box"), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("spatial_matrix_text", [](std::uint32_t bits, int left, int right) { return spatial::matrix{bits, left, right}.text(); });
    m.def("spatial_read_file", [](std::filesystem::path const& path, std::string const& id) {
        read_options how;
        how.id = id;
        auto got = [&] { without_gil const unlocked; return read_file(path, how); }().value();
        return nb::make_tuple(std::move(got.rows), std::move(got.ids), got.has_heights);
    }, nb::arg("path"), nb::arg("id"));
    m.def("spatial_relations", [] {
        std::vector<std::string> out;
        for (int i = 0; i <= static_cast<int>(predicate::equals); ++i) out.emplace_back(spatial::name_of(static_cast<predicate>(i)));
        return out;
    });
}

}  // namespace kiln::python
