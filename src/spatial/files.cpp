// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/files.hpp>

#include "base/files.hpp"
#include "spatial/text_rows.hpp"

#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkb.hpp>

#include <fcntl.h>

namespace kiln::spatial {

namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 36;
constexpr std::size_t binary_within = 4096;  // other formats have a zero byte among the first ones

constexpr std::pair<std::string_view, file_format> endings[] = {
    {".wkt", file_format::wkt},          {".wkb", file_format::wkb},          {".csv", file_format::csv},
    {".tsv", file_format::csv},          {".geojson", file_format::geojson},  {".json", file_format::geojson},
    {".geojsonl", file_format::geojson}, {".geojsons", file_format::geojson}, {".ndjson", file_format::geojson},
};

file_format format_of(std::string_view name, std::string_view text) {
    for (auto const& [ending, format] : endings)
        if (name.ends_with(ending)) return format;
    auto const first = text.find_first_not_of(" \t\r\n\x1e\xef\xbb\xbf");
    if (first == text.npos) return file_format::automatic;
    if (text[first] == '{') return file_format::geojson;
    auto const word = text.substr(
        first, text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", first) - first);
    for (auto const* const known :
         {"POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "SRID"})
        if (word == known) return file_format::wkt;
    if (text.substr(0, binary_within).find('\0') != text.npos) return file_format::automatic;  // no text at all
    auto const line = text.substr(first, text.find('\n', first) - first);
    if (line.starts_with("00000") || line.starts_with("01")) return file_format::wkb;
    return line.find_first_of(",;\t") != line.npos ? file_format::csv : file_format::automatic;
}

// One row per line.
template <class Read>
result<rows_of_file> read_lines(text_source const& from, Read read) {
    rows_of_file out;
    geometry_builder to;
    auto rest = from.text;
    for (std::uint32_t line = 1; !rest.empty(); ++line) {
        auto const end = std::min(rest.find('\n'), rest.size());
        if (auto done = read(rest.substr(0, end), to); !done)
            return std::move(done).error().within(fmt::format("{}, line {}", from.name, line));
        out.lines.push_back(line);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    KILN_TRY(out.rows, to.finish());
    return out;
}

int digit_of(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}
result<void> read_hexadecimal_row(std::string_view text, geometry_builder& to) {
    while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
    if (text.empty()) return to.null(), result<void>{};
    if (text.size() % 2 != 0) return fail(errc::invalid_argument, "row {}: an odd number of digits", to.rows());
    std::vector<std::uint8_t> bytes(text.size() / 2);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        int const high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return fail(errc::invalid_argument, "row {}: '{}' is no hexadecimal digit", to.rows(),
                        text[2 * i + (high < 0 ? 0 : 1)]);
        bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
    }
    return read_wkb_row(bytes, to);
}

result<rows_of_file> read_as(file_format format, text_source const& from, read_options const& how) {
    bool const has_names = format == file_format::csv || format == file_format::geojson;
    if (!how.id.empty() && !has_names)
        return fail(errc::invalid_argument,
                    "{}: rows of {} have no names; '{}' can be a column of a CSV or a property of a "
                    "GeoJSON",
                    from.name, name_of(format), how.id);
    switch (format) {
        case file_format::wkt: return read_lines(from, read_wkt_row);
        case file_format::wkb: return read_lines(from, read_hexadecimal_row);
        case file_format::csv: return read_csv(from, how);
        case file_format::geojson: return read_geojson(from, how);
        case file_format::automatic: break;
    }
    return fail(errc::invalid_argument,
                "{}: neither its name nor its first line says what it is; name a format: wkt, wkb, csv or "
                "geojson; what GDAL knows (.gpkg, .shp, .fgb) is turned into one of them by 'kiln spatial convert'",
                from.name);
}

}  // namespace

std::string_view name_of(file_format what) noexcept {
    switch (what) {
        case file_format::automatic: return "automatic";
        case file_format::wkt: return "wkt";
        case file_format::wkb: return "wkb";
        case file_format::csv: return "csv";
        case file_format::geojson: return "geojson";
    }
    return "unknown";
}

result<rows_of_file> read_text(std::string_view text, std::string_view name, read_options const& how) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark, as some editors put there
    auto const format = how.format != file_format::automatic ? how.format : format_of(name, text);
    KILN_TRY(auto out, read_as(format, {name, text}, how));
    if (how.what == read_options::check::nothing) return out;
    KILN_TRY(auto const flaws, validate(out.rows, 1));
    if (!flaws.empty())
        return fail(errc::invalid_argument, "{}, line {}: {}", name, out.lines[flaws[0].row], flaws[0].message);
    return out;
}

result<rows_of_file> read_file(std::filesystem::path const& from, read_options const& how) {
    KILN_TRY(auto const opened, base::open_file(from, O_RDONLY | O_NOCTTY));
    auto const bytes = base::read_all(opened.get(), most_bytes);
    if (!bytes) return error{bytes.error()}.within(from.native());
    return read_text(base::as_text(*bytes), from.native(), how);
}

result<std::string> to_wkb_lines(geometries const& from) {
    KILN_TRY(auto const all, to_wkb(from));
    std::string out;
    for (std::size_t i = 0; i < all.rows(); ++i) {
        if (!all.is_null(i))
            for (auto at = all.offsets()->data()[i]; at < all.offsets()->data()[i + 1]; ++at)
                out += fmt::format("{:02X}", all.values().data()[at]);
        out += '\n';
    }
    return out;
}

}  // namespace kiln::spatial
