// SPDX-License-Identifier: Apache-2.0
#include "spatial_gdal.hpp"

#include "base/check.hpp"

#include <kiln/runtime/interop.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkb.hpp>

#include <cstring>
#include <dlfcn.h>
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
    int (*layers)(void*);
    void* (*layer)(void*, int);
    long long (*count)(void* layer, int force);
    bool (*stream)(void* layer, ArrowArrayStream* out, char** options);
    char const* (*version)(char const*);
    void (*push_handler)(void (*)(int kind, int number, char const* message), void* data);
    void (*pop_handler)();
    void* (*handler_data)();
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
    resolve(out.layers, "GDALDatasetGetLayerCount");
    resolve(out.layer, "GDALDatasetGetLayer");
    resolve(out.count, "OGR_L_GetFeatureCount");
    resolve(out.stream, "OGR_L_GetArrowStream");
    resolve(out.version, "GDALVersionInfo");
    resolve(out.push_handler, "CPLPushErrorHandlerEx");
    resolve(out.pop_handler, "CPLPopErrorHandler");
    resolve(out.handler_data, "CPLGetErrorHandlerUserData");
    if (!missing.empty()) return fail(errc::unsupported, "{} has no {}; GDAL 3.6 or newer is needed", library, missing);
    return out;
}
result<gdal_table> const& the_gdal() {
    static auto const table = load_gdal();
    return table;
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

// Metadata of a field: counts and lengths as int32, then bytes. Only whether a word is in it.
bool metadata_has(char const* metadata, std::string_view word) {
    if (metadata == nullptr) return false;
    auto const number = [&](std::size_t at) {
        std::int32_t out = 0;
        std::memcpy(&out, metadata + at, 4);
        return static_cast<std::size_t>(out);
    };
    std::size_t end = 4;
    for (std::size_t i = 0; i < 2 * number(0); ++i) end += 4 + number(end);
    return std::string_view{metadata, end}.find(word) != std::string_view::npos;
}

// One column of the batches of a stream, as bytes or text per row.
class arrow_column {
public:
    arrow_column(ArrowSchema const& schema, std::int64_t at) : at_{at}, format_{schema.children[at]->format} {}

    // Text, a number or a truth value.
    [[nodiscard]] bool is_name() const {
        return format_.size() == 1 && std::strchr("uUbcCsSiIlLfg", format_[0]) != nullptr;
    }
    [[nodiscard]] std::string const& format() const { return format_; }
    // Of one row of a batch; nothing where it is null.
    [[nodiscard]] std::optional<std::string> value(ArrowArray const& batch, std::int64_t row) const {
        auto const& a = *batch.children[at_];
        auto const i = static_cast<std::size_t>(row + a.offset + batch.offset);
        auto const* const valid = static_cast<std::uint8_t const*>(a.buffers[0]);
        if (valid != nullptr && (valid[i / 8] >> (i % 8) & 1U) == 0) return {};
        if (format_ == "z" || format_ == "u") return bytes<std::int32_t>(a, i);
        if (format_ == "Z" || format_ == "U") return bytes<std::int64_t>(a, i);
        switch (format_[0]) {
            case 'b':
                return (static_cast<std::uint8_t const*>(a.buffers[1])[i / 8] >> (i % 8) & 1U) != 0 ? "true" : "false";
            case 'c': return number<std::int8_t>(a, i);
            case 'C': return number<std::uint8_t>(a, i);
            case 's': return number<std::int16_t>(a, i);
            case 'S': return number<std::uint16_t>(a, i);
            case 'i': return number<std::int32_t>(a, i);
            case 'I': return number<std::uint32_t>(a, i);
            case 'l': return number<std::int64_t>(a, i);
            case 'L': return number<std::uint64_t>(a, i);
            case 'f': return number<float>(a, i);
            case 'g': return number<double>(a, i);
            default: return {};
        }
    }

private:
    template <class T>
    static std::string number(ArrowArray const& a, std::size_t i) {
        auto const value = static_cast<T const*>(a.buffers[1])[i];
        if constexpr (sizeof(T) == 1) return std::to_string(value);  // not a letter
        else return fmt::format("{}", value);
    }
    template <class Offset>
    static std::string bytes(ArrowArray const& a, std::size_t i) {
        auto const* const offsets = static_cast<Offset const*>(a.buffers[1]);
        return {static_cast<char const*>(a.buffers[2]) + offsets[i],
                static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
    }
    std::int64_t at_;
    std::string format_;
};

std::optional<std::int64_t> child_where(ArrowSchema const& schema, auto const& is) {
    for (std::int64_t i = 0; i < schema.n_children; ++i)
        if (is(*schema.children[i])) return i;
    return {};
}

result<spatial::rows_of_file> read_stream(ArrowArrayStream& stream, std::string const& file,
                                          spatial::read_options const& how) {
    auto const trouble = [&] {
        auto const* const why = stream.get_last_error(&stream);
        return fail(errc::io, "{}: GDAL: {}", file, why != nullptr ? why : "the stream ended with an error");
    };
    released<ArrowSchema> schema;
    if (stream.get_schema(&stream, &schema.raw) != 0) return trouble();
    auto const shape = child_where(schema.raw, [](ArrowSchema const& c) {
        return metadata_has(c.metadata, "ogc.wkb") || metadata_has(c.metadata, "geoarrow.wkb");
    });
    if (!shape) return fail(errc::invalid_argument, "{}: its first layer has no geometry", file);
    std::optional<arrow_column> names;
    if (!how.id.empty()) {
        auto const at = child_where(schema.raw, [&](ArrowSchema const& c) { return how.id == c.name; });
        if (!at) return fail(errc::invalid_argument, "{}: its first layer has no field '{}'", file, how.id);
        names.emplace(schema.raw, *at);
        if (!names->is_name())
            return fail(
                errc::invalid_argument,
                "{}: the field '{}' has neither text, numbers nor truth values (its type is '{}' in Arrow), which "
                "are names of rows",
                file, how.id, names->format());
    }
    arrow_column const geometry{schema.raw, *shape};
    std::vector<std::optional<std::string>> rows;
    spatial::rows_of_file out;
    for (;;) {
        released<ArrowArray> batch;
        if (stream.get_next(&stream, &batch.raw) != 0) return trouble();
        if (batch.raw.release == nullptr) break;
        for (std::int64_t i = 0; i < batch.raw.length; ++i) {
            rows.push_back(geometry.value(batch.raw, i));
            if (names) out.ids.push_back(names->value(batch.raw, i).value_or(""));
            out.lines.push_back(static_cast<std::uint32_t>(rows.size()));
        }
    }
    std::vector<std::span<std::uint8_t const>> bytes;
    for (auto const& r : rows)
        bytes.emplace_back(r ? reinterpret_cast<std::uint8_t const*>(r->data()) : nullptr, r ? r->size() : 0);
    auto read = spatial::from_wkb(bytes);
    if (!read) return std::move(read).error().within(file);
    out.rows = *std::move(read);
    if (how.what == spatial::read_options::check::valid)
        if (auto good = spatial::require_valid(out.rows); !good) return std::move(good).error().within(file);
    return out;
}

}  // namespace

result<std::string> gdal_in_words() {
    auto const& gdal = the_gdal();
    if (!gdal) return error{gdal.error()};
    return fmt::format("{} ({})", gdal->version("RELEASE_NAME"), KILN_GDAL_LIBRARY);
}

result<spatial::rows_of_file> read_with_gdal(std::string const& file, spatial::read_options const& how) {
    auto const& gdal = the_gdal();
    if (!gdal) return error{gdal.error()};
    gdal_complaints const opening{*gdal};
    gdal->register_all();
    constexpr unsigned vector_only = 0x04;
    std::unique_ptr<void, int (*)(void*)> const data{gdal->open(file.c_str(), vector_only, nullptr, nullptr, nullptr),
                                                     gdal->close};
    if (!data)
        return fail(errc::invalid_argument, "{}: GDAL: {}", file, opening.first().value_or("no format it knows"));
    if (gdal->layers(data.get()) < 1) return fail(errc::invalid_argument, "{}: GDAL finds no layer in it", file);
    auto* const layer = gdal->layer(data.get(), 0);
    gdal_complaints const reading{*gdal};
    auto const count = gdal->count(layer, 1);
    // Of an empty FlatGeobuf, the stream of GDAL 3.6 has empty batches and no end.
    if (count == 0 && !reading.first()) return spatial::rows_of_file{};
    released<ArrowArrayStream> stream;
    if (!gdal->stream(layer, &stream.raw, nullptr))
        return fail(errc::unsupported, "{}: GDAL: {}", file, reading.first().value_or("it gives no reason"));
    auto read = read_stream(stream.raw, file, how);
    if (!read) return read;
    if (reading.first()) return fail(errc::io, "{}: GDAL: {}; is the file whole?", file, *reading.first());
    if (read->rows.empty())
        return fail(errc::io, "{}: GDAL counts {} features and finds none; is the file whole?", file, count);
    return read;
}

}  // namespace kiln::cli
