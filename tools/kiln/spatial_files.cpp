// SPDX-License-Identifier: Apache-2.0
#include "spatial_files.hpp"

#include "misuse.hpp"
#include "spatial_gdal.hpp"

#include <unistd.h>

namespace kiln::cli {

namespace {

constexpr std::uintmax_t worth_telling = std::uintmax_t{8} << 20;  // bytes of input that take about a second
constexpr std::size_t most_piped = std::size_t{1} << 36;

spatial::file_format format_named(std::string const& name) {
    using spatial::file_format;
    if (name == "auto" || name == "gdal") return file_format::automatic;
    for (auto const known : {file_format::wkt, file_format::wkb, file_format::csv, file_format::geojson})
        if (name == name_of(known)) return known;
    throw misuse{fmt::format("there is no format '{}'; wkt, wkb, csv, geojson, gdal or auto", name)};
}

bool is_ours(std::string const& file) {
    auto const ending = ending_of(file);
    for (auto const* known :
         {"", ".wkt", ".wkb", ".csv", ".tsv", ".txt", ".geojson", ".json", ".geojsonl", ".geojsons", ".ndjson"})
        if (ending == known) return true;
    return false;
}

result<spatial::rows_of_file> read_rows_of(spatial_input const& from, std::string const& format,
                                           spatial::read_options const& how) {
    auto const& file = from.file;
    if (file == "-") {
        if (format == "gdal")
            throw misuse{std::string{"--format gdal: standard input is not read by GDAL; name a file"}};
        KILN_TRY(auto const bytes, base::read_all(STDIN_FILENO, most_piped));
        return spatial::read_text(base::as_text(bytes), "standard input", how);
    }
    bool const named = how.format != spatial::file_format::automatic;
    if (format != "gdal" && (named || is_ours(file))) {
        if (!from.layer.empty()) throw misuse{fmt::format("--layer {}: {} has no layers", from.layer, file)};
        return spatial::read_file(file, how);
    }
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) return fail(errc::not_found, "{}: there is no such file", file);
    auto read = read_with_gdal(file, from.layer, how);
    if (read || read.error().code() != errc::not_found) return read;
    if (format == "gdal") return std::move(read).error().within(file);
    return fail(
        errc::not_found,
        "{}: Kiln itself reads .geojson, .json, .geojsonl, .csv, .tsv, .wkt and .wkb (or what --format says: geojson, "
        "csv, wkt, wkb); everything else takes GDAL: {}",
        file, read.error().message());
}

}  // namespace

std::string spatial_layer::name(std::int32_t row) const {
    return data.ids.empty() ? std::to_string(row) : csv_field(data.ids[static_cast<std::size_t>(row)]);
}
json spatial_layer::name_in_json(std::int32_t row) const {
    if (data.ids.empty()) return row;
    return id_in_json(data.ids[static_cast<std::size_t>(row)]);
}
json spatial_layer::id_in_json(std::string const& id) const {
    if (data.ids_are_text) return id;
    if (id.empty()) return nullptr;
    auto value = json::parse(id, nullptr, false);
    return value.is_discarded() ? json(id) : value;  // a number that JSON does not have
}

result<spatial_layer> read_layer(spatial_input const& from, spatial_reading const& how) {
    auto const format = format_named(how.format);
    if (how.x.empty() != how.y.empty()) throw misuse{std::string{"--x and --y go together: name both columns"}};
    KILN_TRY(auto data, read_rows_of(from, how.format,
                                     {.format = format,
                                      .id = from.id,
                                      .x = how.x,
                                      .y = how.y,
                                      .wkt = how.wkt,
                                      .properties = how.keeps_properties ? spatial::read_options::extras::kept
                                                                         : spatial::read_options::extras::skipped}));
    return spatial_layer{from.file, std::move(data)};
}

namespace {

progress::style style_for(std::vector<std::string> const& files) {
    if (::isatty(STDERR_FILENO) == 1) return progress::style::automatic;
    std::uintmax_t bytes = 0;
    for (auto const& file : files) {
        std::error_code why;
        auto const size = std::filesystem::file_size(file, why);
        bytes += why ? 0 : size;
    }
    return bytes >= worth_telling ? progress::style::automatic : progress::style::silent;
}

}  // namespace

spatial_progress::spatial_progress(std::string title, std::size_t steps, std::vector<std::string> const& files)
    : bar_{std::move(title), steps, style_for(files)} {}

std::string csv_field(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == text.npos) return std::string{text};
    std::string out{"\""};
    for (char const c : text) out += c == '"' ? std::string{"\"\""} : std::string{c};
    return out + '"';
}

std::string ending_of(std::string const& file) {
    auto out = std::filesystem::path{file}.extension().native();
    for (auto& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

spatial_output output_kind(std::string const& file) {
    auto const ending = ending_of(file);
    if (ending == ".geojson" || ending == ".json") return spatial_output::geojson;
    if (ending == ".wkt") return spatial_output::wkt;
    return ending == ".wkb" ? spatial_output::wkb : spatial_output::csv;
}

}  // namespace kiln::cli
