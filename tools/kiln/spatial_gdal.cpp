// SPDX-License-Identifier: Apache-2.0
#include "spatial_gdal.hpp"

#include "arrow_column.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "command.hpp"

#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkb.hpp>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>

#ifndef KILN_GDAL_LIBRARY
#define KILN_GDAL_LIBRARY ""
#endif

extern "C" {
struct ArrowArrayStream {
    int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
    int (*get_next)(ArrowArrayStream*, ArrowArray* out);
    char const* (*get_last_error)(ArrowArrayStream*);
    void (*release)(ArrowArrayStream*);
    void* private_data;
};
}

namespace kiln::cli {

namespace {

// The part of GDAL's C interface that is used; stable since 3.6.
struct gdal_table {
    void (*register_all)();
    void* (*open)(char const* file, unsigned flags, char const* const* drivers, char const* const* options,
                  char const* const* siblings);
    int (*close)(void*);
    void* (*driver)(void*);
    char const* (*driver_name)(void* driver);
    int (*layers)(void*);
    void* (*layer)(void*, int);
    long long (*count)(void* layer, int force);
    bool (*stream)(void* layer, ArrowArrayStream* out, char** options);
    char const* (*version)(char const*);
    void (*set_option)(char const* name, char const* value);
    void (*push_handler)(void (*)(int kind, int number, char const* message), void* data);
    void (*pop_handler)();
    void* (*handler_data)();
    void* (*reference)(void* layer);
    char const* (*authority)(void* reference, char const* part);
    char const* (*authority_code)(void* reference, char const* part);
    int (*reference_text)(void* reference, char** out);
    void (*free)(void*);
    char const* (*layer_name)(void* layer);
    int (*can)(void* layer, char const* what);
    int (*ignore_fields)(void* layer, char const** names);
    void (*rewind)(void* layer);
    void* (*next_feature)(void* layer);
    void (*end_feature)(void* feature);
    void* (*definition)(void* layer);
    int (*fields)(void* definition);
    void* (*field)(void* definition, int at);
    char const* (*field_name)(void* field);
    int (*field_type)(void* field);
    int (*has_value)(void* feature, int field);
    int (*time)(void* feature, int field, int* year, int* month, int* day, int* hour, int* minute, float* second,
                int* zone);
};

result<gdal_table> load_gdal() {
    constexpr std::string_view library = KILN_GDAL_LIBRARY;
    if (library.empty())
        return fail(errc::not_found,
                    "this kiln was built without GDAL; configure it where libgdal is installed, or with "
                    "-DKILN_GDAL_LIBRARY=FILE");
    void* const opened = ::dlopen(library.data(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) return fail(errc::not_found, "GDAL cannot be opened: {}", ::dlerror());
    gdal_table out{};
    std::string missing;
    auto const resolve = [&](auto& to, char const* name) {
        void* const at = ::dlsym(opened, name);
        if (at == nullptr) missing = name;
        std::memcpy(&to, &at, sizeof(at));
    };
    resolve(out.register_all, "GDALAllRegister");
    resolve(out.open, "GDALOpenEx");
    resolve(out.close, "GDALClose");
    resolve(out.driver, "GDALGetDatasetDriver");
    resolve(out.driver_name, "GDALGetDriverShortName");
    resolve(out.layers, "GDALDatasetGetLayerCount");
    resolve(out.layer, "GDALDatasetGetLayer");
    resolve(out.count, "OGR_L_GetFeatureCount");
    resolve(out.stream, "OGR_L_GetArrowStream");
    resolve(out.version, "GDALVersionInfo");
    resolve(out.set_option, "CPLSetConfigOption");
    resolve(out.push_handler, "CPLPushErrorHandlerEx");
    resolve(out.pop_handler, "CPLPopErrorHandler");
    resolve(out.handler_data, "CPLGetErrorHandlerUserData");
    resolve(out.reference, "OGR_L_GetSpatialRef");
    resolve(out.authority, "OSRGetAuthorityName");
    resolve(out.authority_code, "OSRGetAuthorityCode");
    resolve(out.reference_text, "OSRExportToWkt");
    resolve(out.free, "VSIFree");
    resolve(out.layer_name, "OGR_L_GetName");
    resolve(out.can, "OGR_L_TestCapability");
    resolve(out.ignore_fields, "OGR_L_SetIgnoredFields");
    resolve(out.rewind, "OGR_L_ResetReading");
    resolve(out.next_feature, "OGR_L_GetNextFeature");
    resolve(out.end_feature, "OGR_F_Destroy");
    resolve(out.definition, "OGR_L_GetLayerDefn");
    resolve(out.fields, "OGR_FD_GetFieldCount");
    resolve(out.field, "OGR_FD_GetFieldDefn");
    resolve(out.field_name, "OGR_Fld_GetNameRef");
    resolve(out.field_type, "OGR_Fld_GetType");
    resolve(out.has_value, "OGR_F_IsFieldSetAndNotNull");
    resolve(out.time, "OGR_F_GetFieldAsDateTimeEx");
    if (!missing.empty()) return fail(errc::unsupported, "{} has no {}; GDAL 3.6 or newer is needed", library, missing);
    return out;
}
result<gdal_table> const& the_gdal() {
    static auto const table = load_gdal();
    return table;
}

// Before 3.8.3 GDAL's own streams of these two formats have wrong truth values; what it makes of their features one by one is right.
void keep_truth_values(gdal_table const& gdal) {
    constexpr int mended = 3080300;
    if (std::atoi(gdal.version("VERSION_NUM")) >= mended) return;
    gdal.set_option("OGR_GPKG_STREAM_BASE_IMPL", "YES");
    gdal.set_option("OGR_FLATGEOBUF_STREAM_BASE_IMPL", "YES");
}

// GDAL goes on where it can: what it cannot read of a file becomes a null row, and it says so. While one of these is there, that is kept
// instead of printed.
class gdal_complaints {
public:
    explicit gdal_complaints(gdal_table const& gdal) : gdal_{gdal} { gdal_.push_handler(&gdal_complaints::take, this); }
    gdal_complaints(gdal_complaints const&) = delete;
    ~gdal_complaints() { gdal_.pop_handler(); }

    // The first failure's message.
    [[nodiscard]] std::optional<std::string> const& first() const noexcept { return first_; }

private:
    static void take(int kind, int /*number*/, char const* message) {
        constexpr int failure = 3;
        auto* const self = static_cast<gdal_complaints*>(the_gdal()->handler_data());
        if (kind >= failure && !self->first_) self->first_ = message;
    }
    gdal_table const& gdal_;
    std::optional<std::string> first_;
};

template <class T>
struct released {
    T raw{};
    released() = default;
    released(released const&) = delete;
    ~released() {
        if (raw.release != nullptr) raw.release(&raw);
    }
};

// By field, then by row: the text of a date with its time, "" for null.
using times_of_fields = std::map<std::string, std::vector<std::string>, std::less<>>;

std::string time_of(gdal_table const& gdal, void* feature, int field) {
    if (gdal.has_value(feature, field) == 0) return {};
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, zone = 0;
    float second = 0;
    gdal.time(feature, field, &year, &month, &day, &hour, &minute, &second, &zone);
    auto const thousandths = static_cast<int>(std::lround(static_cast<double>(second) * 1000));
    auto out = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", year, month, day, hour, minute, thousandths / 1000);
    if (thousandths % 1000 != 0) out += fmt::format(".{:03}", thousandths % 1000);
    constexpr int unknown = 0, local = 1, utc = 100;  // else in quarters of an hour from there
    if (zone == unknown || zone == local) return out;
    if (zone == utc) return out + 'Z';
    auto const minutes = std::abs(zone - utc) * 15;
    return out + fmt::format("{}{:02}:{:02}", zone < utc ? '-' : '+', minutes / 60, minutes % 60);
}
// GDAL's streams leave the zones of times out: they are read from the features.
times_of_fields times_of(gdal_table const& gdal, void* layer, text_encoding encoding) {
    constexpr int date_and_time = 11;
    auto* const definition = gdal.definition(layer);
    std::vector<std::pair<int, std::vector<std::string>*>> columns;
    times_of_fields out;
    for (int i = 0; i < gdal.fields(definition); ++i) {
        auto* const field = gdal.field(definition, i);
        if (gdal.field_type(field) == date_and_time)
            columns.emplace_back(i, &out[decoded(gdal.field_name(field), encoding)]);
    }
    if (columns.empty()) return out;
    char const* no_geometry[] = {"OGR_GEOMETRY", nullptr};
    gdal.ignore_fields(layer, no_geometry);
    gdal.rewind(layer);
    while (auto* const feature = gdal.next_feature(layer)) {
        for (auto const& [field, to] : columns) to->push_back(time_of(gdal, feature, field));
        gdal.end_feature(feature);
    }
    gdal.ignore_fields(layer, nullptr);
    gdal.rewind(layer);
    return out;
}

// What the columns of a layer are to whoever asks.
class layer_columns {
public:
    static result<layer_columns> make(ArrowSchema const& schema, std::string const& file, text_encoding encoding,
                                      spatial::read_options const& how) {
        layer_columns out;
        std::vector<arrow_column> others;
        for (std::int64_t i = 0; i < schema.n_children; ++i) {
            arrow_column column{schema, i, encoding};
            if (column.is_geometry() && !out.geometry_) out.geometry_ = std::move(column);
            else others.push_back(std::move(column));
        }
        if (!out.geometry_) return fail(errc::invalid_argument, "{}: the layer has no geometry", file);
        if (!how.id.empty()) {
            auto const at = std::ranges::find(others, how.id, &arrow_column::name);
            if (at == others.end())
                return fail(errc::invalid_argument, "{}: the layer has no field '{}'; there are: {}", file, how.id,
                            names_of(others));
            if (!at->is_name())
                return fail(errc::invalid_argument,
                            "{}: the field '{}' has neither text, numbers nor truth values (its type is '{}' in "
                            "Arrow), which are names of rows",
                            file, how.id, at->format());
            out.id_ = *at;
        }
        if (how.properties == spatial::read_options::extras::kept) {
            bool const has_number = !others.empty() && (others[0].name() == "OGC_FID" || others[0].name() == "fid");
            out.fields_.assign(others.begin() + (has_number ? 1 : 0), others.end());  // not GDAL's own
        }
        return out;
    }
    [[nodiscard]] std::optional<arrow_column> const& id() const noexcept { return id_; }
    [[nodiscard]] std::optional<std::string> geometry(ArrowArray const& batch, std::int64_t row) const {
        return geometry_->value(batch, row);
    }
    [[nodiscard]] bool has_fields() const noexcept { return !fields_.empty(); }
    // The fields of a row of a batch as the text of an object. `number` is the row's in the layer.
    [[nodiscard]] std::string object(ArrowArray const& batch, std::int64_t row, std::size_t number,
                                     times_of_fields const& times) const {
        std::string out{"{"};
        for (auto const& column : fields_) {
            auto value = column.in_json(batch, row);
            if (!value) continue;
            auto const exact = column.is_time_without_zone() ? times.find(column.name()) : times.end();
            if (exact != times.end() && number < exact->second.size() && !exact->second[number].empty())
                value = base::json_text(json(exact->second[number]));
            out += fmt::format("{}{}:{}", out.size() == 1 ? "" : ",", base::json_text(json(column.name())), *value);
        }
        return out + '}';
    }

private:
    static std::string names_of(std::vector<arrow_column> const& columns) {
        std::string out;
        for (auto const& c : columns) out += (out.empty() ? "" : ", ") + c.name();
        return out.empty() ? "none" : out;
    }
    std::optional<arrow_column> geometry_, id_;
    std::vector<arrow_column> fields_;
};

// With Z or M as well: 1007, 2007 and 3007, or bits above.
bool is_collection(std::span<std::uint8_t const> wkb) {
    if (wkb.size() < 5) return false;
    std::uint32_t type = 0;
    for (std::size_t i = 0; i < 4; ++i) type |= std::uint32_t{wkb[wkb[0] == 1 ? 1 + i : 4 - i]} << (8 * i);
    return (type & 0xffffU) % 1000 == 7;
}

struct layer_source {
    std::string const& file;
    text_encoding encoding;
    times_of_fields times;
};

result<spatial::rows_of_file> read_stream(ArrowArrayStream& stream, layer_source const& from,
                                          spatial::read_options const& how) {
    auto const trouble = [&] {
        auto const* const why = stream.get_last_error(&stream);
        return fail(errc::io, "{}: GDAL: {}", from.file, why != nullptr ? why : "the stream ended with an error");
    };
    released<ArrowSchema> schema;
    if (stream.get_schema(&stream, &schema.raw) != 0) return trouble();
    KILN_TRY(auto const columns, layer_columns::make(schema.raw, from.file, from.encoding, how));
    std::vector<std::optional<std::string>> rows;
    spatial::rows_of_file out;
    out.ids_are_text = !columns.id() || columns.id()->is_text();
    for (;;) {
        released<ArrowArray> batch;
        if (stream.get_next(&stream, &batch.raw) != 0) return trouble();
        if (batch.raw.release == nullptr) break;
        for (std::int64_t i = 0; i < batch.raw.length; ++i) {
            if (columns.has_fields()) out.properties.push_back(columns.object(batch.raw, i, rows.size(), from.times));
            if (columns.id()) out.ids.push_back(columns.id()->value(batch.raw, i).value_or(""));
            rows.push_back(columns.geometry(batch.raw, i));
        }
    }
    std::vector<std::span<std::uint8_t const>> bytes;
    for (auto const& r : rows)
        bytes.emplace_back(r ? reinterpret_cast<std::uint8_t const*>(r->data()) : nullptr, r ? r->size() : 0);
    auto read = spatial::from_wkb(bytes);
    if (!read && read.error().code() == errc::unsupported)
        return fail(errc::unsupported, "{}: {}; {}", from.file, read.error().message(),
                    std::ranges::any_of(bytes, is_collection)
                        ? "'ogr2ogr -dim XY -explodecollections' makes a file with a row for each part, which is taken"
                        : "'ogr2ogr -dim XY -nlt CONVERT_TO_LINEAR' makes a file that is taken");
    if (!read) return std::move(read).error().within(from.file);
    out.rows = *std::move(read);
    if (how.what == spatial::read_options::check::valid)
        if (auto good = spatial::require_valid(out.rows); !good) return std::move(good).error().within(from.file);
    return out;
}

// "EPSG:3035", or the whole WKT of one that nobody has numbered; "" where there is none.
std::string crs_of(gdal_table const& gdal, void* layer) {
    auto* const reference = gdal.reference(layer);
    if (reference == nullptr) return {};
    auto const* const authority = gdal.authority(reference, nullptr);
    auto const* const code = gdal.authority_code(reference, nullptr);
    if (authority != nullptr && code != nullptr) return fmt::format("{}:{}", authority, code);
    char* text = nullptr;
    gdal.reference_text(reference, &text);
    std::string out{text != nullptr ? text : ""};
    gdal.free(text);
    return out;
}

// The layer of this name; without one the first, and who asked is told that there are others.
result<void*> layer_named(gdal_table const& gdal, void* data, std::string const& file, std::string const& name) {
    auto const count = gdal.layers(data);
    if (count < 1) return fail(errc::invalid_argument, "{}: GDAL finds no layer in it", file);
    std::string others;
    for (int i = 0; i < count; ++i) {
        auto* const layer = gdal.layer(data, i);
        if (name == gdal.layer_name(layer)) return layer;
        if (i > 0 || !name.empty()) others += (others.empty() ? "" : ", ") + std::string{gdal.layer_name(layer)};
    }
    if (!name.empty())
        return fail(errc::invalid_argument, "{}: there is no layer '{}'; there are: {}", file, name, others);
    auto* const first = gdal.layer(data, 0);
    if (count > 1)
        complain(fmt::format("{}: its first layer, {}, is read; --layer names another: {}", file,
                             gdal.layer_name(first), others));
    return first;
}

// GDAL promises UTF-8 of some formats only. A shapefile that does not tell how its text is written: as most of them are.
text_encoding encoding_of(gdal_table const& gdal, void* data, void* layer) {
    if (gdal.can(layer, "StringsAsUTF8") != 0) return text_encoding::utf8;
    auto* const driver = gdal.driver(data);
    bool const is_shapefile = driver != nullptr && std::string_view{gdal.driver_name(driver)} == "ESRI Shapefile";
    return is_shapefile ? text_encoding::latin1 : text_encoding::untold;
}

}  // namespace

result<std::string> gdal_in_words() {
    auto const& gdal = the_gdal();
    if (!gdal) return error{gdal.error()};
    return fmt::format("{} ({})", gdal->version("RELEASE_NAME"), KILN_GDAL_LIBRARY);
}

result<spatial::rows_of_file> read_with_gdal(std::string const& file, std::string const& layer_name,
                                             spatial::read_options const& how) {
    auto const& gdal = the_gdal();
    if (!gdal) return error{gdal.error()};
    gdal_complaints const opening{*gdal};
    gdal->register_all();
    keep_truth_values(*gdal);
    constexpr unsigned vector_only = 0x04;
    std::unique_ptr<void, int (*)(void*)> const data{gdal->open(file.c_str(), vector_only, nullptr, nullptr, nullptr),
                                                     gdal->close};
    if (!data)
        return fail(
            errc::invalid_argument,
            "{}: GDAL: {}; 'ogrinfo --formats' lists those that it has, and ogr2ogr or GeoPandas write one of them",
            file, opening.first().value_or("no format it knows"));
    KILN_TRY(auto* const layer, layer_named(*gdal, data.get(), file, layer_name));
    gdal_complaints const reading{*gdal};
    auto const count = gdal->count(layer, 1);
    // Of an empty FlatGeobuf, the stream of GDAL 3.6 has empty batches and no end.
    if (count == 0 && !reading.first()) return spatial::rows_of_file{};
    auto const encoding = encoding_of(*gdal, data.get(), layer);
    layer_source from{file, encoding, {}};
    if (how.properties == spatial::read_options::extras::kept) from.times = times_of(*gdal, layer, encoding);
    released<ArrowArrayStream> stream;
    if (!gdal->stream(layer, &stream.raw, nullptr))
        return fail(errc::unsupported, "{}: GDAL: {}", file, reading.first().value_or("it gives no reason"));
    auto read = read_stream(stream.raw, from, how);
    if (!read) return read;
    read->crs = crs_of(*gdal, layer);
    if (reading.first()) return fail(errc::io, "{}: GDAL: {}; is the file whole?", file, *reading.first());
    if (read->rows.empty())
        return fail(errc::io, "{}: GDAL counts {} features and finds none; is the file whole?", file, count);
    return read;
}

}  // namespace kiln::cli
