// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/arrow.hpp>

#include "base/check.hpp"
#include "cuda/context.hpp"

#include <kiln/spatial/wkb.hpp>

#include <algorithm>
#include <functional>
#include <limits>

namespace kiln::spatial {

namespace {

constexpr std::string_view name_key = "ARROW:extension:name", metadata_key = "ARROW:extension:metadata";

// ---- Metadata: a count, then lengths and bytes of keys and values, all int32 of this machine ----

std::string metadata_value(char const* from, std::string_view key) {
    if (from == nullptr) return {};
    auto const number = [&] {
        std::int32_t n = 0;
        std::memcpy(&n, from, sizeof(n));
        from += sizeof(n);
        return n;
    };
    auto const text = [&] {
        auto const n = static_cast<std::size_t>(std::max(number(), 0));
        std::string_view const out{from, n};
        from += n;
        return out;
    };
    for (auto left = number(); left > 0; --left) {
        auto const k = text(), v = text();
        if (k == key) return std::string{v};
    }
    return {};
}

std::string metadata_of(std::vector<std::pair<std::string_view, std::string>> const& pairs) {
    std::string out;
    auto const number = [&](std::size_t n) {
        auto const v = static_cast<std::int32_t>(n);
        out.append(reinterpret_cast<char const*>(&v), sizeof(v));
    };
    number(pairs.size());
    for (auto const& [key, value] : pairs) {
        number(key.size()), out += key;
        number(value.size()), out += value;
    }
    return out;
}

// ---- Taking over ----

template <class Struct>
class taken {
public:
    explicit taken(Struct* from) : value{*from} { from->release = nullptr; }
    taken(taken const&) = delete;
    taken& operator=(taken const&) = delete;
    ~taken() {
        if (value.release != nullptr) value.release(&value);
    }
    Struct value;
};

struct source {
    std::shared_ptr<taken<ArrowArray> const> keep;
    residency where = residency::host;
    int device = 0;

    template <class T>
    [[nodiscard]] buffer<T> borrow(void const* data, std::int64_t n) const {
        return buffer<T>::borrow(static_cast<T*>(const_cast<void*>(data)), static_cast<std::size_t>(n), where, device,
                                 keep);
    }
};

// Whether the fields of a struct are x and y, and in which order. Unnamed ones go by their place where an extension says what they are.
enum class fields : std::uint8_t { x_and_y, y_and_x, unnamed, others };
fields fields_of(ArrowSchema const& schema) {
    std::string_view names[2];
    for (int i = 0; i < 2; ++i)
        if (auto const* const name = schema.children[i]->name; name != nullptr) names[i] = name;
    if (names[0] == "x" && names[1] == "y") return fields::x_and_y;
    if (names[0] == "y" && names[1] == "x") return fields::y_and_x;
    return names[0].empty() && names[1].empty() ? fields::unnamed : fields::others;
}

// What else would be read where nothing is. Of the memory that buffers point to only their makers know how much there is.
constexpr std::int64_t most_elements = std::int64_t{1} << 48;
result<void> check_structure(ArrowSchema const& schema, ArrowArray const& array, std::int64_t buffers,
                             std::int64_t children) {
    if (array.n_buffers != buffers || array.n_children != children || schema.n_children != children || array.length < 0)
        return fail(errc::invalid_argument, "from_arrow: an array of format '{}' with {} buffers and {} children",
                    schema.format, array.n_buffers, array.n_children);
    if (array.offset < 0 || array.offset > most_elements || array.length > most_elements)
        return fail(errc::invalid_argument, "from_arrow: an array of format '{}' with {} rows from row {} on",
                    schema.format, array.length, array.offset);
    bool is_there =
        array.buffers != nullptr && (children == 0 || (array.children != nullptr && schema.children != nullptr));
    for (std::int64_t i = 0; is_there && i < children; ++i)
        is_there =
            array.children[i] != nullptr && schema.children[i] != nullptr && schema.children[i]->format != nullptr;
    if (!is_there)
        return fail(errc::invalid_argument, "from_arrow: an array of format '{}' lacks its buffers or children",
                    schema.format);
    return {};
}

result<void> check(source const& from, ArrowSchema const& schema, ArrowArray const& array, std::int64_t buffers,
                   std::int64_t children) {
    KILN_CHECK(check_structure(schema, array, buffers, children));
    if (array.offset != 0 && from.where == residency::device)
        return fail(errc::unsupported, "from_arrow: an array on a device with offset {}: slice it with a copy first",
                    array.offset);
    return {};
}

result<family> family_of(source const& from, std::string_view extension, ArrowSchema const& schema) {
    for (std::size_t i = 1; i <= single_families; ++i) {
        auto const kind = static_cast<family>(i);
        if (extension == fmt::format("geoarrow.{}", name_of(kind))) return kind;
    }
    std::string_view const format{schema.format};
    if (!extension.empty())
        return fail(errc::unsupported, "from_arrow: {} is not read; geoarrow.wkb and the six families are", extension);
    if (format == "+w:2") return family::point;
    if (format != "+s")
        return fail(errc::invalid_argument,
                    "from_arrow: a field of format '{}' without {}: several families look like that; import "
                    "geoarrow's types, or set it in the field's metadata, as 'geoarrow.linestring'",
                    format, name_key);
    KILN_CHECK(check(from, schema, from.keep->value, 1, 2));
    if (auto const named = fields_of(schema); named == fields::others || named == fields::unnamed)
        return fail(errc::invalid_argument, "from_arrow: a struct without {} whose fields are not x and y", name_key);
    return family::point;
}

// A part of a level: a slice of an array says which of its own rows count, and those which of the next level.
struct extent {
    std::int64_t begin = 0, count = 0;
};

bool is_set(void const* bits, std::int64_t at) {
    return bits == nullptr || (static_cast<std::uint8_t const*>(bits)[at / 8] >> (at % 8) & 1U) != 0;
}
// Only rows may be null. What lies under a row that is, `above`, may be so too: nobody looks at it. Where nulls were not counted, their bits tell.
result<void> refuse_nulls(source const& from, ArrowArray const& array, extent const& used,
                          std::function<bool(std::int64_t)> const& is_above_null = {}) {
    auto const* const bits = array.buffers[0];
    if (array.null_count == 0 || (bits == nullptr && array.null_count < 0)) return {};
    if (bits != nullptr && from.where == residency::device && array.null_count < 0)
        return fail(errc::unsupported, "from_arrow: nulls below the rows, on a device, that were not counted");
    bool is_null = bits == nullptr || from.where == residency::device;
    for (std::int64_t i = 0; i < used.count && !is_null; ++i)
        is_null = !is_set(bits, array.offset + used.begin + i) && !(is_above_null && is_above_null(i));
    if (is_null) return fail(errc::invalid_argument, "from_arrow: nulls below the rows");
    return {};
}

// Offsets that begin at 0, and what they span. On a device nobody looks at them: they are as they came.
struct divided {
    buffer<std::int32_t> offsets;
    extent inner;
};
result<divided> divide(source const& from, void const* raw, extent const& rows, std::int64_t inner) {
    if (rows.count == 0) return divided{buffer<std::int32_t>::copy_of({0}), {}};
    if (raw == nullptr) return fail(errc::invalid_argument, "from_arrow: {} rows without offsets", rows.count);
    if (from.where == residency::device)
        return divided{from.borrow<std::int32_t>(raw, rows.count + 1), {.begin = 0, .count = inner}};
    auto const* const offsets = static_cast<std::int32_t const*>(raw) + rows.begin;
    auto const first = offsets[0], last = offsets[rows.count];
    if (first < 0 || last < first || last > inner)
        return fail(errc::invalid_argument, "from_arrow: offsets from {} to {} of {}", first, last, inner);
    if (first == 0) return divided{from.borrow<std::int32_t>(offsets, rows.count + 1), {.begin = 0, .count = last}};
    auto moved = buffer<std::int32_t>::on_host(static_cast<std::size_t>(rows.count + 1));
    for (std::int64_t i = 0; i <= rows.count; ++i) moved.data()[i] = offsets[i] - first;
    return divided{std::move(moved), {.begin = first, .count = last - first}};
}

// The bits of an array's own rows, the first of them in the lowest bit.
buffer<std::uint8_t> bits_of(source const& from, ArrowArray const& array) {
    auto const* const all = static_cast<std::uint8_t const*>(array.buffers[0]) + array.offset / 8;
    auto const shift = static_cast<unsigned>(array.offset % 8);
    auto const bytes = (array.length + 7) / 8;
    if (shift == 0) return from.borrow<std::uint8_t>(all, bytes);
    auto moved = buffer<std::uint8_t>::on_host(static_cast<std::size_t>(bytes));
    auto const there = (array.length + shift + 7) / 8;
    for (std::int64_t i = 0; i < bytes; ++i) {
        auto const next = i + 1 < there ? unsigned{all[i + 1]} << (8 - shift) : 0U;
        moved.data()[i] = static_cast<std::uint8_t>(unsigned{all[i]} >> shift | next);
    }
    return moved;
}

// Doubles of a child: `used` of them.
result<double const*> doubles_in(source const& from, ArrowSchema const& schema, ArrowArray const& array,
                                 extent const& used) {
    KILN_CHECK(check(from, schema, array, 2, 0));
    if (std::string_view{schema.format} != "g")
        return fail(errc::invalid_argument, "from_arrow: coordinates are doubles, not '{}'", schema.format);
    if (array.length < used.begin + used.count)
        return fail(errc::invalid_argument, "from_arrow: {} coordinates where {} are needed", array.length,
                    used.begin + used.count);
    if (used.count == 0) return nullptr;
    if (array.buffers[1] == nullptr)
        return fail(errc::invalid_argument, "from_arrow: {} coordinates without memory", array.length);
    return static_cast<double const*>(array.buffers[1]) + array.offset + used.begin;
}

// x and y apart. Of points the vertices are the rows, which may be null.
result<void> import_separated(source const& from, ArrowSchema const& schema, ArrowArray const& array,
                              extent const& vertices, geometry_parts& to) {
    KILN_CHECK(check(from, schema, array, 1, 2));
    auto const named = fields_of(schema);
    if (named == fields::others)
        return fail(errc::unsupported, "from_arrow: coordinates are fields x and y, and these have other names");
    extent const used{.begin = array.offset + vertices.begin, .count = vertices.count};
    bool const are_rows = levels_of(to.kind) == 0;
    if (!are_rows) KILN_CHECK(refuse_nulls(from, array, vertices));
    for (int i = 0; i < 2; ++i) {
        auto const& child = *array.children[i];
        KILN_TRY(auto const* const all, doubles_in(from, *schema.children[i], child, used));
        KILN_CHECK(refuse_nulls(from, child, used, [&](std::int64_t at) {
            return are_rows && !is_set(array.buffers[0], used.begin + at);
        }));
        ((i == 0) == (named != fields::y_and_x) ? to.x : to.y) = from.borrow<double>(all, used.count);
    }
    return {};
}
result<void> import_interleaved(source const& from, ArrowSchema const& schema, ArrowArray const& array,
                                extent const& vertices, geometry_parts& to) {
    KILN_CHECK(check(from, schema, array, 1, 1));
    auto const& child = *array.children[0];
    extent const used{.begin = 2 * (array.offset + vertices.begin), .count = 2 * vertices.count};
    KILN_TRY(auto const* const xy, doubles_in(from, *schema.children[0], child, used));
    if (from.where == residency::device)
        return fail(errc::unsupported,
                    "from_arrow: interleaved coordinates on a device: separate them, or bring them to the host");
    bool const are_rows = levels_of(to.kind) == 0;
    if (!are_rows) KILN_CHECK(refuse_nulls(from, array, vertices));
    KILN_CHECK(refuse_nulls(from, child, used, [&](std::int64_t at) {
        return are_rows && !is_set(array.buffers[0], array.offset + vertices.begin + at / 2);
    }));
    auto const n = static_cast<std::size_t>(vertices.count);
    to.x = buffer<double>::on_host(n), to.y = buffer<double>::on_host(n);
    for (std::size_t i = 0; i < n; ++i) to.x.data()[i] = xy[2 * i], to.y.data()[i] = xy[2 * i + 1];
    return {};
}
result<void> import_coordinates(source const& from, ArrowSchema const& schema, ArrowArray const& array,
                                extent const& vertices, geometry_parts& to) {
    std::string_view const format{schema.format};
    if (format == "+w:3" || format == "+w:4" || (format == "+s" && schema.n_children > 2 && schema.n_children <= 4))
        return fail(errc::unsupported,
                    "from_arrow: Z or M coordinates; only x and y are taken: leave the others out before, as "
                    "shapely.force_2d does");
    if (format == "+s") return import_separated(from, schema, array, vertices, to);
    if (format == "+w:2") return import_interleaved(from, schema, array, vertices, to);
    return fail(errc::unsupported, "from_arrow: coordinates of format '{}'; x and y as +s or +w:2 are taken", format);
}

result<geometries> import_nested(source const& from, family kind, ArrowSchema const& schema, ArrowArray const& array) {
    geometry_parts to;
    to.kind = kind;
    auto const* s = &schema;
    auto const* a = &array;
    extent rows{.begin = 0, .count = array.length};
    for (std::size_t level = 0; level < levels_of(kind); ++level) {
        if (std::string_view{s->format} != "+l")
            return fail(errc::unsupported,
                        "from_arrow: level {} of a {} has format '{}', not lists with 32-bit offsets", level,
                        name_of(kind), s->format);
        KILN_CHECK(check(from, *s, *a, 2, 1));
        if (level > 0) KILN_CHECK(refuse_nulls(from, *a, rows));
        extent const own{.begin = a->offset + rows.begin, .count = rows.count};
        KILN_TRY(auto inside, divide(from, a->buffers[1], own, a->children[0]->length));
        to.offsets[level] = std::move(inside.offsets);
        rows = inside.inner;
        s = s->children[0], a = a->children[0];
    }
    KILN_CHECK(import_coordinates(from, *s, *a, rows, to));
    if (array.buffers[0] != nullptr && array.null_count != 0) to.validity = bits_of(from, array);
    return geometries::make(std::move(to));
}

result<geometries> import_wkb(source const& from, ArrowSchema const& schema, ArrowArray const& array) {
    if (std::string_view{schema.format} != "z")
        return fail(errc::unsupported, "from_arrow: WKB of format '{}'; binary with 32-bit offsets is read",
                    schema.format);
    if (from.where == residency::device)
        return fail(errc::unsupported, "from_arrow: WKB on a device: bring it to the host");
    KILN_CHECK(check(from, schema, array, 3, 0));
    if (array.length == 0) return geometries{};
    extent const rows{.begin = array.offset, .count = array.length};
    KILN_TRY(auto const inside, divide(from, array.buffers[1], rows, std::numeric_limits<std::int32_t>::max()));
    std::optional<buffer<std::uint8_t>> validity;
    if (array.buffers[0] != nullptr) validity = bits_of(from, array);
    if (array.buffers[2] == nullptr && inside.inner.count > 0)
        return fail(errc::invalid_argument, "from_arrow: {} rows without bytes", array.length);
    auto const* const all = static_cast<std::uint8_t const*>(array.buffers[2]) + inside.inner.begin;
    auto const bytes = from.borrow<std::uint8_t>(all, inside.inner.count);
    return from_wkb(column<std::uint8_t>::lists(bytes, inside.offsets, std::move(validity)));
}

result<geometries> import_any(source const& from, ArrowSchema const& schema) {
    auto const& array = from.keep->value;
    if (schema.release == nullptr || array.release == nullptr)
        return fail(errc::invalid_argument, "from_arrow: what was released, or taken by somebody else");
    if (schema.format == nullptr) return fail(errc::invalid_argument, "from_arrow: a field without a format");
    if (array.length > std::numeric_limits<std::int32_t>::max())
        return fail(errc::unsupported, "from_arrow: {} rows: take the array in parts", array.length);
    auto const extension = metadata_value(schema.metadata, name_key);
    bool const bytes = extension.empty() && std::string_view{schema.format} == "z";
    if (bytes || extension == "geoarrow.wkb" || extension == "ogc.wkb") return import_wkb(from, schema, array);
    KILN_TRY(auto const kind, family_of(from, extension, schema));
    return import_nested(from, kind, schema, array);
}

result<void> require_there(void const* schema, void const* array) {
    if (schema != nullptr && array != nullptr) return {};
    return fail(errc::invalid_argument, "from_arrow: no {}", schema == nullptr ? "schema" : "array");
}

// ---- Handing out ----

struct schema_node {
    ArrowSchema schema{};
    std::string format, name, metadata;
    std::vector<std::unique_ptr<schema_node>> children;
    std::vector<ArrowSchema*> pointers;

    schema_node* add(std::string child_format, std::string child_name) {
        auto& child = *children.emplace_back(std::make_unique<schema_node>());
        child.format = std::move(child_format), child.name = std::move(child_name);
        return &child;
    }
    void link() {
        for (auto& child : children) child->link(), pointers.push_back(&child->schema);
        schema.format = format.c_str(), schema.name = name.c_str();
        schema.metadata = metadata.empty() ? nullptr : metadata.c_str();
        schema.n_children = static_cast<std::int64_t>(pointers.size());
        schema.children = pointers.empty() ? nullptr : pointers.data();
        schema.release = [](ArrowSchema* s) { s->release = nullptr; };
    }
};

struct array_node {
    ArrowArray array{};
    std::vector<void const*> buffers;
    std::vector<std::unique_ptr<array_node>> children;
    std::vector<ArrowArray*> pointers;

    array_node* add(std::int64_t length, std::vector<void const*> child_buffers) {
        auto& child = *children.emplace_back(std::make_unique<array_node>());
        child.array.length = length, child.buffers = std::move(child_buffers);
        return &child;
    }
    void link() {
        for (auto& child : children) child->link(), pointers.push_back(&child->array);
        array.n_buffers = static_cast<std::int64_t>(buffers.size());
        array.buffers = buffers.data();
        array.n_children = static_cast<std::int64_t>(pointers.size());
        array.children = pointers.empty() ? nullptr : pointers.data();
        array.release = [](ArrowArray* a) { a->release = nullptr; };
    }
};

// All that an exported array keeps alive.
struct exported {
    array_node root;
    geometry_parts parts;
    buffer<double> interleaved;
    std::optional<device_event> ready;
    CUevent_st* event = nullptr;
};

std::vector<std::string> level_names(family kind) {
    switch (kind) {
        case family::linestring: return {"vertices"};
        case family::polygon: return {"rings", "vertices"};
        case family::multipoint: return {"points"};
        case family::multilinestring: return {"linestrings", "vertices"};
        case family::multipolygon: return {"polygons", "rings", "vertices"};
        default: return {};
    }
}

std::int64_t device_type_of(residency where) noexcept {
    switch (where) {
        case residency::pinned: return ARROW_DEVICE_CUDA_HOST;
        case residency::device: return ARROW_DEVICE_CUDA;
        case residency::managed: return ARROW_DEVICE_CUDA_MANAGED;
        default: return ARROW_DEVICE_CPU;
    }
}

void describe(schema_node& root, geometry_parts const& parts, arrow_options const& how) {
    bool const separated = how.layout == coordinates::separated;
    auto* s = &root;
    std::string const leaf = separated ? "+s" : "+w:2";
    auto const names = level_names(parts.kind);
    root.format = names.empty() ? leaf : "+l";
    root.name = how.name;
    for (std::size_t i = 0; i < names.size(); ++i) s = s->add(i + 1 < names.size() ? "+l" : leaf, names[i]);
    if (separated) s->add("g", "x"), s->add("g", "y");
    else s->add("g", "xy");
    std::vector<std::pair<std::string_view, std::string>> pairs{
        {name_key, fmt::format("geoarrow.{}", name_of(parts.kind))}};
    if (!how.crs.empty()) pairs.emplace_back(metadata_key, fmt::format(R"({{"crs":{}}})", how.crs));
    root.metadata = metadata_of(pairs);
    root.schema.flags = parts.validity ? ARROW_FLAG_NULLABLE : 0;
    root.link();
}

void fill(exported& out, std::size_t rows, coordinates layout) {
    auto const& p = out.parts;
    auto* a = &out.root;
    void const* const validity = p.validity ? p.validity->data() : nullptr;
    a->array.length = static_cast<std::int64_t>(rows);
    a->array.null_count = p.validity ? -1 : 0;
    a->buffers = {validity};
    for (std::size_t level = 0; level < levels_of(p.kind); ++level) {
        a->buffers.push_back(p.offsets[level].data());
        bool const last = level + 1 == levels_of(p.kind);
        auto const inner = last ? p.x.size() : p.offsets[level + 1].size() - 1;
        a = a->add(static_cast<std::int64_t>(inner), {nullptr});
    }
    auto const n = static_cast<std::int64_t>(p.x.size());
    if (layout == coordinates::separated) {
        a->add(n, {nullptr, p.x.data()});
        a->add(n, {nullptr, p.y.data()});
    } else {
        out.interleaved = buffer<double>::on_host(2 * p.x.size());
        for (std::size_t i = 0; i < p.x.size(); ++i)
            out.interleaved.data()[2 * i] = p.x.data()[i], out.interleaved.data()[2 * i + 1] = p.y.data()[i];
        a->add(2 * n, {nullptr, out.interleaved.data()});
    }
    out.root.link();
}

}  // namespace

result<geometries> from_arrow(stream_ref on, ArrowSchema* schema, ArrowDeviceArray* array) {
    KILN_CHECK(require_there(schema, array));
    taken<ArrowSchema> const described{schema};
    auto* const event = static_cast<CUevent_st**>(array->sync_event);
    source from;
    from.device = array->device_id < 0 ? 0 : static_cast<int>(array->device_id);
    auto const type = array->device_type;
    from.keep = std::make_shared<taken<ArrowArray> const>(&array->array);
    if (type == ARROW_DEVICE_CUDA) from.where = residency::device;
    else if (type == ARROW_DEVICE_CUDA_HOST) from.where = residency::pinned;
    else if (type == ARROW_DEVICE_CUDA_MANAGED) from.where = residency::managed;
    else if (type != ARROW_DEVICE_CPU)
        return fail(errc::unsupported, "from_arrow: data on a device of type {}: only the host and CUDA are known",
                    type);
    if (event != nullptr) {
        KILN_TRY(auto const context, cuda::context::of(from.device));
        KILN_TRY(auto const scope, cuda::current_context::enter(*context));
        KILN_CHECK(cuda::call<&cuda::driver_api::stream_wait_event>(context->api(), on.get(), *event, 0U));
    }
    return import_any(from, described.value);
}

result<geometries> from_arrow(ArrowSchema* schema, ArrowArray* array) {
    KILN_CHECK(require_there(schema, array));
    taken<ArrowSchema> const described{schema};
    source from;
    from.keep = std::make_shared<taken<ArrowArray> const>(array);
    return import_any(from, described.value);
}

result<void> to_arrow(stream_ref on, geometries const& what, ArrowSchema* schema, ArrowDeviceArray* array,
                      arrow_options const& how) {
    if (what.kind() == family::mixed)
        return fail(errc::unsupported, "to_arrow: a mixed array; to_wkb() writes one that others read");
    if (what.chosen()) return fail(errc::unsupported, "to_arrow: a view; compact() copies its rows");
    if (how.layout == coordinates::interleaved && what.where() == residency::device)
        return fail(errc::unsupported, "to_arrow: interleaved coordinates are made on the host");
    auto described = std::make_unique<schema_node>();
    auto out = std::make_unique<exported>();
    out->parts = what.parts();
    if (on_device(what.where())) {
        KILN_TRY(auto ready, device_event::make(what.device(), event_timing::off));
        KILN_CHECK(ready.record(on));
        out->event = ready.get();
        out->ready = std::move(ready);
    }
    describe(*described, out->parts, how);
    fill(*out, what.rows(), how.layout);
    *array = {};
    array->array = out->root.array;
    array->array.release = [](ArrowArray* a) {
        delete static_cast<exported*>(a->private_data);
        a->release = nullptr;
    };
    array->device_id = what.where() == residency::host ? -1 : what.device();
    array->device_type = static_cast<ArrowDeviceType>(device_type_of(what.where()));
    array->sync_event = out->event != nullptr ? static_cast<void*>(&out->event) : nullptr;
    array->array.private_data = out.release();
    *schema = described->schema;
    schema->release = [](ArrowSchema* s) {
        delete static_cast<schema_node*>(s->private_data);
        s->release = nullptr;
    };
    schema->private_data = described.release();
    return {};
}

}  // namespace kiln::spatial
