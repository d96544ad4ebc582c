// SPDX-License-Identifier: Apache-2.0
// Arrays of geometries, in and out: GeoArrow on the host and on a device, WKB, WKT, coordinates with offsets. Which library an
// object comes from is Python's part (kiln/spatial.py).
#include "arrays.hpp"
#include "device_array.hpp"
#include "gil.hpp"
#include "module.hpp"
#include "streams.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <kiln/spatial/arrow.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkb.hpp>
#include <kiln/spatial/wkt.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

// Arrow's C stream interface, as it is in memory.
extern "C" struct kiln_arrow_stream {
    int (*get_schema)(kiln_arrow_stream*, ArrowSchema*);
    int (*get_next)(kiln_arrow_stream*, ArrowArray*);
    char const* (*get_last_error)(kiln_arrow_stream*);
    void (*release)(kiln_arrow_stream*);
    void* private_data;
};

// The same of arrays on a device.
extern "C" struct kiln_arrow_device_stream {
    std::int32_t device_type;
    int (*get_schema)(kiln_arrow_device_stream*, ArrowSchema*);
    int (*get_next)(kiln_arrow_device_stream*, ArrowDeviceArray*);
    char const* (*get_last_error)(kiln_arrow_device_stream*);
    void (*release)(kiln_arrow_device_stream*);
    void* private_data;
};

namespace kiln::python {

namespace {

using spatial::family;
using spatial::geometries;
using spatial::geometry_parts;

template <class T>
T* capsule_pointer(nb::handle capsule, char const* name) {
    auto* const at = PyCapsule_GetPointer(capsule.ptr(), name);
    if (at == nullptr) throw nb::python_error();
    return static_cast<T*>(at);
}

// ---- In ----

geometries from_arrow_array(nb::handle schema, nb::handle rows) {
    auto* const s = capsule_pointer<ArrowSchema>(schema, "arrow_schema");
    auto* const a = capsule_pointer<ArrowArray>(rows, "arrow_array");
    auto got = [&] {
        without_gil const unlocked;
        return spatial::from_arrow(s, a);
    }();
    return std::move(got).value();
}

geometries from_arrow_device(nb::handle schema, nb::handle rows) {
    auto* const s = capsule_pointer<ArrowSchema>(schema, "arrow_schema");
    auto* const a = capsule_pointer<ArrowDeviceArray>(rows, "arrow_device_array");
    auto got = [&] {
        without_gil const unlocked;
        return spatial::from_arrow(default_stream, s, a);
    }();
    return std::move(got).value();
}

template <class T>
void append(std::vector<T>& to, buffer<T> const& from) {
    to.insert(to.end(), from.data(), from.data() + from.size());
}

// Rows of arrays of one family on the host, one array after the other.
result<geometries> joined(std::vector<geometries> const& all) {
    auto const kind = all.front().kind();
    std::vector<double> x, y;
    std::array<std::vector<std::int32_t>, 3> offsets;
    std::vector<std::uint8_t> validity;
    std::size_t rows = 0;
    bool nulls = false;
    for (auto const& one : all) {
        auto const& parts = one.parts();
        append(x, parts.x), append(y, parts.y);
        for (std::size_t level = 0; level < spatial::levels_of(kind); ++level) {
            auto& to = offsets[level];
            auto const from = parts.offsets[level];
            auto const base = to.empty() ? 0 : to.back();
            if (to.empty()) to.push_back(0);
            for (std::size_t i = 1; i < from.size(); ++i) {
                auto const next = std::int64_t{base} + from.data()[i];
                if (next > std::numeric_limits<std::int32_t>::max())
                    return error{errc::unsupported, "the parts have more than 2^31 - 1 of something together: take fewer rows at a time"};
                to.push_back(static_cast<std::int32_t>(next));
            }
        }
        for (std::size_t i = 0; i < one.rows(); ++i, ++rows) {
            if (rows % 8 == 0) validity.push_back(0);
            bool const valid = !one.is_null(i);
            nulls = nulls || !valid;
            validity.back() = static_cast<std::uint8_t>(validity.back() | (valid ? 1U << rows % 8 : 0U));
        }
    }
    geometry_parts out{.kind = kind, .x = buffer<double>::copy_of(x), .y = buffer<double>::copy_of(y)};
    for (std::size_t level = 0; level < spatial::levels_of(kind); ++level) out.offsets[level] = buffer<std::int32_t>::copy_of(offsets[level]);
    if (nulls) out.validity = buffer<std::uint8_t>::copy_of(validity);
    return geometries::make(std::move(out));
}

constexpr std::size_t most_bytes = std::numeric_limits<std::int32_t>::max();
constexpr char too_many_bytes[] = "more than 2^31 - 1 bytes of WKB: take fewer rows at a time";

// The same of arrays of several families.
result<geometries> joined_by_wkb(std::vector<geometries> const& all) {
    std::vector<std::uint8_t> bytes, validity;
    std::vector<std::int32_t> offsets{0};
    for (auto const& one : all) {
        auto const rows = spatial::to_wkb(one);
        if (!rows) return rows.error();
        auto const base = offsets.back();
        append(bytes, rows->values());
        if (bytes.size() > most_bytes) return error{errc::unsupported, too_many_bytes};
        for (std::size_t i = 0; i < rows->rows(); ++i) {
            if ((offsets.size() - 1) % 8 == 0) validity.push_back(0);
            validity.back() = static_cast<std::uint8_t>(validity.back() | (one.is_null(i) ? 0U : 1U << (offsets.size() - 1) % 8));
            offsets.push_back(base + rows->offsets()->data()[i + 1]);
        }
    }
    return spatial::from_wkb(column<std::uint8_t>::lists(buffer<std::uint8_t>::copy_of(bytes), buffer<std::int32_t>::copy_of(offsets),
                                                         buffer<std::uint8_t>::copy_of(validity)));
}

// An array without rows of whatever a schema describes.
class no_rows {
public:
    explicit no_rows(ArrowSchema const& schema) {
        std::string_view const format{schema.format};
        bool const has_no_values = format.starts_with("+s") || format.starts_with("+w");
        bool const is_text = format == "z" || format == "u" || format == "Z" || format == "U";
        array.n_buffers = has_no_values ? 1 : is_text ? 3 : 2;
        for (std::int64_t i = 0; i < schema.n_children; ++i) children_.push_back(std::make_unique<no_rows>(*schema.children[i]));
        for (auto const& child : children_) pointers_.push_back(&child->array);
        array.n_children = schema.n_children;
        array.children = pointers_.data();
        array.buffers = buffers_.data();
        array.release = [](ArrowArray* a) { a->release = nullptr; };
    }
    ArrowArray array{};

private:
    std::array<void const*, 3> buffers_{};
    std::vector<std::unique_ptr<no_rows>> children_;
    std::vector<ArrowArray*> pointers_;
};

// A stream that was somebody else's until now: nobody reads it a second time.
template <class Stream>
class taken_stream {
public:
    explicit taken_stream(Stream* from) : value_{std::exchange(*from, Stream{})} {}
    ~taken_stream() {
        if (value_.release != nullptr) value_.release(&value_);
    }
    taken_stream(taken_stream const&) = delete;
    taken_stream& operator=(taken_stream const&) = delete;
    [[nodiscard]] Stream* get() noexcept { return &value_; }

private:
    Stream value_;
};

ArrowArray& rows_of(ArrowArray& array) { return array; }
ArrowArray& rows_of(ArrowDeviceArray& array) { return array.array; }
result<geometries> taken(ArrowSchema* schema, ArrowArray* array) { return spatial::from_arrow(schema, array); }
result<geometries> taken(ArrowSchema* schema, ArrowDeviceArray* array) { return spatial::from_arrow(default_stream, schema, array); }

template <class Array, class Stream>
result<geometries> all_of(Stream* given) {
    if (given->release == nullptr)
        return error{errc::invalid_argument, "from_arrow: the stream was read or released before, or taken by somebody else: ask for another one"};
    taken_stream<Stream> held{given};
    auto* const from = held.get();
    std::vector<geometries> parts;
    for (;;) {
        ArrowSchema schema{};
        Array rows{};
        auto const told = [&](int code) {
            auto const* const why = from->get_last_error(from);
            return error{errc::invalid_argument, std::string{"the Arrow stream gives nothing: "} + (why != nullptr ? why : "no reason")}.with_status(code);
        };
        if (auto const code = from->get_schema(from, &schema); code != 0) return told(code);
        if (auto const code = from->get_next(from, &rows); code != 0) {
            schema.release(&schema);
            return told(code);
        }
        bool const is_end = rows_of(rows).release == nullptr;
        if (is_end && !parts.empty()) {
            schema.release(&schema);
            break;
        }
        no_rows none{schema};  // a stream without an array still says of what it has none
        auto got = is_end ? taken(&schema, &none.array) : taken(&schema, &rows);
        if (!got || is_end) return got;
        parts.push_back(*std::move(got));
    }
    if (parts.size() == 1) return parts.front();
    if (std::ranges::any_of(parts, [](auto const& one) { return on_device(one.where()); }))
        return error{errc::unsupported, "the Arrow stream has " + std::to_string(parts.size()) + " arrays on a device, which would be copied to be one: pass each by itself, or what "
                                        "their library makes of them all"};
    for (auto const& one : parts)
        if (one.kind() != parts.front().kind() || one.kind() == family::mixed) return joined_by_wkb(parts);
    return joined(parts);
}

template <class Array, class Stream>
geometries from_arrow_stream(nb::handle capsule, char const* name) {
    auto* const from = capsule_pointer<Stream>(capsule, name);
    auto got = [&] {
        without_gil const unlocked;
        return all_of<Array>(from);
    }();
    return std::move(got).value();
}

family family_by_name(std::string const& name) {
    for (int i = 1; i <= static_cast<int>(spatial::single_families); ++i)
        if (name == spatial::name_of(static_cast<family>(i))) return static_cast<family>(i);
    throw error{errc::invalid_argument, "there is no family '" + name + "'; there are point, linestring, polygon, multipoint, multilinestring, multipolygon"};
}

// Rows of one family as an array that could hold others.
geometries as_mixed(geometries const& rows) {
    if (rows.kind() == family::mixed) return rows;
    geometry_parts own = rows.parts();
    std::vector<std::int32_t> numbers(rows.rows());
    std::iota(numbers.begin(), numbers.end(), 0);
    spatial::mixed_parts out;
    out.type = buffer<std::int8_t>::copy_of(std::vector(rows.rows(), static_cast<std::int8_t>(rows.kind())));
    out.child_row = buffer<std::int32_t>::copy_of(numbers);
    out.validity = std::exchange(own.validity, std::nullopt);
    out.children.push_back(geometries::make(std::move(own)).value());
    return geometries::make(std::move(out)).value();
}

// `kind`: mixed, or that of rows that do not tell, because all are missing or there are none.
geometries from_wkb_rows(nb::handle rows, std::string const& kind) {
    std::vector<std::uint8_t> bytes, validity;
    std::vector<std::int32_t> offsets{0};
    std::size_t row = 0;
    bool const is_mixed = kind == spatial::name_of(family::mixed);
    for (nb::handle const one : rows) {
        if (row % 8 == 0) validity.push_back(0);
        if (!one.is_none()) {
            char* at = nullptr;
            Py_ssize_t size = 0;
            if (PyBytes_AsStringAndSize(one.ptr(), &at, &size) != 0) throw nb::python_error();
            bytes.insert(bytes.end(), at, at + size);
            validity.back() = static_cast<std::uint8_t>(validity.back() | 1U << row % 8);
        }
        if (bytes.size() > most_bytes) throw error{errc::unsupported, too_many_bytes};
        offsets.push_back(static_cast<std::int32_t>(bytes.size()));
        ++row;
    }
    if (std::ranges::all_of(validity, [](auto eight) { return eight == 0; })) {
        spatial::geometry_builder missing;
        for (std::size_t i = 0; i < row; ++i) missing.null();
        return missing.finish(is_mixed ? family::mixed : family_by_name(kind)).value();
    }
    auto got = [&] {
        without_gil const unlocked;
        return spatial::from_wkb(column<std::uint8_t>::lists(buffer<std::uint8_t>::copy_of(bytes), buffer<std::int32_t>::copy_of(offsets),
                                                             buffer<std::uint8_t>::copy_of(validity)));
    }();
    return is_mixed ? as_mixed(got.value()) : std::move(got).value();
}

geometries from_wkt_rows(nb::typed<nb::list, nb::str> const& rows) {
    // By hand: nanobind makes vectors where nothing may be thrown, and where memory does not do for all rows that ends the program.
    std::vector<std::string> texts;
    texts.reserve(rows.size());
    for (nb::handle const row : rows) {
        Py_ssize_t size = 0;
        char const* const at = PyUnicode_AsUTF8AndSize(row.ptr(), &size);
        if (at == nullptr) throw nb::python_error();
        texts.emplace_back(at, static_cast<std::size_t>(size));
    }
    auto got = [&] {
        without_gil const unlocked;
        return spatial::from_wkt(texts);
    }();
    return std::move(got).value();
}

geometries from_parts(std::string const& kind, nb::handle x, nb::handle y, std::vector<nb::object> const& offsets, nb::handle validity) {
    geometry_parts parts{.kind = family_by_name(kind), .x = borrowed<double>(x, "x"), .y = borrowed<double>(y, "y")};
    if (offsets.size() != spatial::levels_of(parts.kind))
        throw error{errc::invalid_argument, kind + "s have " + std::to_string(spatial::levels_of(parts.kind)) + " arrays of offsets, " +
                                                std::to_string(offsets.size()) + " came"};
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        auto const lent = borrowed<std::int32_t>(offsets[i], "offsets");
        // They are checked once and lead to memory ever after: nobody else may change them.
        parts.offsets[i] = lent.where() == residency::host ? buffer<std::int32_t>::copy_of(lent.host_span()) : lent;
    }
    if (!validity.is_none()) parts.validity = borrowed<std::uint8_t>(validity, "validity");
    return geometries::make(std::move(parts)).value();
}

// ---- Out ----

geometries on_host(geometries const& from) {
    if (from.where() == residency::host && !from.chosen()) return from;
    auto got = [&] {
        without_gil const unlocked;
        if (on_device(from.where())) wait_sync(from.device(), default_stream);
        return from.to_host_sync(default_stream).and_then([](geometries&& there) { return there.chosen() ? there.compact() : result<geometries>{std::move(there)}; });
    }();
    return std::move(got).value();
}

nb::list wkb_rows(geometries const& from) {
    auto const here = on_host(from);
    auto const rows = [&] {
        without_gil const unlocked;
        return spatial::to_wkb(here);
    }().value();
    nb::list out;
    for (std::size_t i = 0; i < rows.rows(); ++i) {
        if (here.is_null(i)) {
            out.append(nb::none());
            continue;
        }
        auto const begin = rows.offsets()->data()[i], end = rows.offsets()->data()[i + 1];
        out.append(nb::bytes(rows.values().data() + begin, static_cast<std::size_t>(end - begin)));
    }
    return out;
}

nb::dict parts_of(geometries const& from) {
    if (from.kind() == family::mixed || from.chosen())
        throw error{errc::unsupported, "rows of several families, or chosen ones, have no arrays of their own: use to_wkb_sync()"};
    auto const& parts = from.parts();
    nb::dict out;
    out["family"] = std::string{spatial::name_of(parts.kind)};
    // Read-only: they may be lent as such, and operations trust what was checked once.
    auto const lent = [](auto const& from) {
        auto given = array_of(from);
        given.read_only = true;
        return given;
    };
    out["x"] = lent(parts.x), out["y"] = lent(parts.y);
    nb::list offsets;
    for (std::size_t i = 0; i < spatial::levels_of(parts.kind); ++i) offsets.append(nb::cast(lent(parts.offsets[i])));
    out["offsets"] = offsets;
    out["validity"] = parts.validity ? nb::cast(lent(*parts.validity)) : nb::none();
    return out;
}

// The capsule's owner calls release unless a consumer has.
template <class Struct>
nb::object arrow_capsule(std::unique_ptr<Struct> what, char const* name, void (*drop)(PyObject*)) {
    auto* const made = PyCapsule_New(what.get(), name, drop);
    if (made == nullptr) throw nb::python_error();
    (void)what.release();
    return nb::steal(made);
}
template <class Struct>
void drop_struct(Struct* held) {
    if (held->release != nullptr) held->release(held);
    delete held;
}

nb::object schema_capsule(std::unique_ptr<ArrowSchema> schema) {
    return arrow_capsule(std::move(schema), "arrow_schema", [](PyObject* c) { drop_struct(static_cast<ArrowSchema*>(PyCapsule_GetPointer(c, "arrow_schema"))); });
}

struct exported {
    std::unique_ptr<ArrowSchema> schema = std::make_unique<ArrowSchema>();
    std::unique_ptr<ArrowDeviceArray> rows = std::make_unique<ArrowDeviceArray>();
};
exported export_rows(geometries const& from, std::string const& crs) {
    exported out;
    spatial::arrow_options how{.crs = crs};
    auto const done = [&] {
        without_gil const unlocked;
        return spatial::to_arrow(default_stream, from, out.schema.get(), out.rows.get(), how);
    }();
    done.value();
    return out;
}

nb::tuple to_arrow_array(geometries const& from, std::string const& crs) {
    if (from.where() != residency::host) throw error{errc::invalid_argument, "these rows are on a device: to_host_sync() brings them here, or use __arrow_c_device_array__"};
    auto all = export_rows(from.chosen() ? from.compact().value() : from, crs);
    auto rows = std::make_unique<ArrowArray>(all.rows->array);
    all.rows->array.release = nullptr;
    auto const array = arrow_capsule(std::move(rows), "arrow_array", [](PyObject* c) { drop_struct(static_cast<ArrowArray*>(PyCapsule_GetPointer(c, "arrow_array"))); });
    return nb::make_tuple(schema_capsule(std::move(all.schema)), array);
}

nb::tuple to_arrow_device(geometries const& from, std::string const& crs) {
    auto all = export_rows(from, crs);
    auto const array = arrow_capsule(std::move(all.rows), "arrow_device_array", [](PyObject* c) {
        auto* const held = static_cast<ArrowDeviceArray*>(PyCapsule_GetPointer(c, "arrow_device_array"));
        if (held->array.release != nullptr) held->array.release(&held->array);
        delete held;
    });
    return nb::make_tuple(schema_capsule(std::move(all.schema)), array);
}

}  // namespace

void bind_geometries(nb::module_& m) {
    nb::class_<geometries>(m, "Geometries", nb::is_weak_referenceable(), "Geometries, one per row, on the host or on a device, in GeoArrow's layout. A missing row is not an empty one.")
        .def("__len__", &geometries::rows)
        .def_prop_ro("family", [](geometries const& g) { return std::string{spatial::name_of(g.kind())}; })
        .def_prop_ro("vertices", &geometries::vertices)
        .def_prop_ro("nbytes", &geometries::bytes)
        .def_prop_ro("ordinal", [](geometries const& g) { return on_device(g.where()) ? g.device() : -1; }, "Of its device; -1 for the host.")
        .def("to_device", [](geometries const& g, int device) { without_gil const unlocked; return g.to_device(default_stream, device).value(); }, nb::arg("device") = 0, "The same rows on a device; queued.")
        .def("to_host_sync", &on_host, "The same rows on the host; waits.")
        .def("to_wkb_sync", &wkb_rows, "One bytes object per row, None for missing ones.")
        .def("to_wkt_sync", [](geometries const& g) { return spatial::to_wkt(on_host(g)).value(); }, "One line per row, \"NULL\" for missing ones.")
        .def("parts", &parts_of, "Its arrays: family, x, y, offsets from the outside in, validity.")
        .def("is_missing_sync", [](geometries const& g) {
            auto const here = on_host(g);
            std::vector<bool> out(here.rows());
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = here.is_null(i);
            return out;
        })
        .def("validate", [](geometries const& g, std::size_t most) {
            auto const here = on_host(g);
            auto const found = [&] { without_gil const unlocked; return spatial::validate(here, most); }().value();
            nb::list out;
            for (auto const& f : found) out.append(nb::make_tuple(f.row, std::string{spatial::name_of(f.what)}, f.message));
            return out;
        }, nb::arg("most") = 100, "What is wrong, by row: (row, what, message).")
        .def("__reduce__", [](geometries const& g) { return nb::make_tuple(nb::module_::import_("kiln.spatial").attr("_again"), nb::make_tuple(wkb_rows(g), std::string{spatial::name_of(g.kind())})); },
             "A pickle is its rows as WKB, and its family; what was on a device comes back on the host.")
        .def("__arrow_c_array__", [](geometries const& g, nb::handle) { return to_arrow_array(g, {}); }, nb::arg("requested_schema") = nb::none())
        .def("__arrow_c_device_array__", [](geometries const& g, nb::handle, nb::kwargs const&) { return to_arrow_device(g, {}); }, nb::arg("requested_schema") = nb::none(), nb::arg("kwargs"))
        .def("__repr__", [](geometries const& g) {
            return "<kiln.spatial.Geometries: " + std::to_string(g.rows()) + " of family " + std::string{spatial::name_of(g.kind())} +
                   (on_device(g.where()) ? " on cuda:" + std::to_string(g.device()) : " on the host") + ">";
        });
    m.def("geometries_from_arrow", &from_arrow_array);
    m.def("geometries_from_arrow_device", &from_arrow_device);
    m.def("geometries_from_arrow_stream", [](nb::handle capsule) { return from_arrow_stream<ArrowArray, kiln_arrow_stream>(capsule, "arrow_array_stream"); });
    m.def("geometries_from_arrow_device_stream", [](nb::handle capsule) { return from_arrow_stream<ArrowDeviceArray, kiln_arrow_device_stream>(capsule, "arrow_device_array_stream"); });
    m.def("geometries_from_wkb", &from_wkb_rows, nb::arg("rows"), nb::arg("family") = "point");
    m.def("geometries_from_wkt", &from_wkt_rows);
    m.def("geometries_from_parts", &from_parts, nb::arg("family"), nb::arg("x"), nb::arg("y"), nb::arg("offsets"), nb::arg("validity").none());
}

}  // namespace kiln::python
