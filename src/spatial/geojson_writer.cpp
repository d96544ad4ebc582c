// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "spatial/geojson_words.hpp"
#include "spatial/rows.hpp"

#include <kiln/spatial/files.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kiln::spatial {

namespace {

std::string crs_member(std::string_view crs) {
    if (crs.empty() || crs == "EPSG:4326" || crs == "OGC:CRS84") return {};
    auto const colon = crs.find(':');
    bool const is_short = colon != crs.npos && crs.find_first_of(" [\"") == crs.npos;  // and no WKT
    auto const name = !is_short || crs.starts_with(long_crs)
                          ? std::string{crs}
                          : fmt::format("{}{}::{}", long_crs, crs.substr(0, colon), crs.substr(colon + 1));
    return fmt::format(R"("crs":{{"type":"name","properties":{{"name":{}}}}},)", base::json_text(nlohmann::json(name)));
}

class geojson_writer {
public:
    geojson_writer(std::span<std::string const> properties, std::string_view crs)
        : properties_{properties},
          text_{fmt::format(R"({{"type":"FeatureCollection",{}"features":[)", crs_member(crs))} {}

    void null() {
        begin_feature();
        text_ += "null";
        end_feature();
    }
    void begin(family kind) {
        begin_feature();
        kind_ = kind;
        auto const* const type =
            std::find_if(std::begin(geojson_types), std::end(geojson_types), [&](auto& t) { return t.second == kind; });
        text_ += fmt::format(R"({{"type":"{}","coordinates":)", type->first);
        depth_ = 0, wanted_ = kind == family::point ? 0 : 1;
        if (wanted_ == 1) open();
        vertices_ = 0;
    }
    void begin_polygon() { close_to(1), open(); }
    void begin_ring() { close_to(kind_ == family::multipolygon ? 2 : 1), open(); }
    void begin_line() { close_to(1), open(); }
    void vertex(double x, double y) {
        separate();
        text_ += '[' + shortest(x) + ',' + shortest(y) + ']';
        ++vertices_;
    }
    void end() {
        if (kind_ == family::point && vertices_ == 0) text_ += "[]";
        close_to(0);
        text_ += '}';
        end_feature();
    }
    std::string take() { return text_ + "\n]}\n"; }

private:
    void begin_feature() {
        text_ += row_ == 0 ? "\n" : ",\n";
        text_ += R"({"type":"Feature","properties":)";
        text_ += row_ < properties_.size() && !properties_[row_].empty() ? properties_[row_] : "{}";
        text_ += R"(,"geometry":)";
    }
    void end_feature() { text_ += '}', ++row_; }
    void separate() {
        if (text_.back() != '[' && text_.back() != ':') text_ += ',';
    }
    void open() { separate(), text_ += '[', ++depth_; }
    void close_to(int depth) {
        for (; depth_ > depth; --depth_) text_ += ']';
    }

    std::span<std::string const> properties_;
    std::string text_;
    family kind_ = family::point;
    int depth_ = 0, wanted_ = 0;
    std::size_t row_ = 0, vertices_ = 0;
};

}  // namespace

result<std::string> to_geojson(geometries const& from, std::span<std::string const> properties, std::string_view crs) {
    if (from.where() == residency::device) return fail(errc::unsupported, "to_geojson: the geometries are on a device");
    if (!properties.empty() && properties.size() != from.rows())
        return fail(errc::invalid_argument, "to_geojson: {} rows with {} properties", from.rows(), properties.size());
    geojson_writer to{properties, crs};
    KILN_CHECK(visit_rows(from, to));
    return to.take();
}

}  // namespace kiln::spatial
