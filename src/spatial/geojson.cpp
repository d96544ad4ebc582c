// SPDX-License-Identifier: Apache-2.0
//
// GeoJSON as it streams by. Members of an object come in any order, so the coordinates of one geometry are kept until its type
// is known, and nothing else is.
#include "base/text.hpp"
#include "spatial/geojson_words.hpp"
#include "spatial/text_rows.hpp"

#include <nlohmann/json.hpp>

namespace kiln::spatial {

namespace {

using json = nlohmann::json;

family const* family_named(std::string_view type) noexcept {
    auto const* const at =
        std::find_if(std::begin(geojson_types), std::end(geojson_types), [&](auto& t) { return t.first == type; });
    return at == std::end(geojson_types) ? nullptr : &at->second;
}

// Characters of the text; remembers how far the parser has come.
struct watched {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = char const*;
    using reference = char const&;

    char const* at;
    char const** reached;
    reference operator*() const { return *at; }
    watched& operator++() {
        *reached = ++at;
        return *this;
    }
    watched operator++(int) {
        auto const before = *this;
        ++*this;
        return before;
    }
    bool operator==(watched const& other) const { return at == other.at; }
    bool operator!=(watched const& other) const { return at != other.at; }
};

// Brackets and positions of one "coordinates".
class coordinate_tree {
public:
    void clear() { shape_.clear(), positions_.clear(), depth_ = 0, numbers_ = 0; }
    [[nodiscard]] bool is_open() const noexcept { return depth_ > 0; }

    // What is wrong, or nothing.
    std::string_view open() {
        if (numbers_ > 0) return "an array among the numbers of a position";
        if (++depth_ > most_depth) return "coordinates nested more than four deep";
        shape_.push_back('(');
        return {};
    }
    std::string_view close() {
        --depth_;
        if (numbers_ == 0) return shape_.push_back(')'), std::string_view{};
        if (numbers_ == 1) return "a position of one number";
        shape_.back() = '.';
        numbers_ = 0;
        return {};
    }
    std::string_view number(double v) {
        if (numbers_ == 0 && shape_.back() != '(') return "a number among positions";
        if (numbers_ == 0) positions_.push_back({v, 0});
        if (numbers_ == 1) positions_.back().second = v;
        if (numbers_ >= 2) has_heights_ = true;  // and they are left out
        ++numbers_;
        return {};
    }
    [[nodiscard]] bool has_heights() const noexcept { return has_heights_; }

    // As a row's content; what is wrong, or nothing.
    std::string_view write(family kind, geometry_builder& to) {
        shape_at_ = position_at_ = 0;
        auto const problem = body(kind, to);
        if (!problem.empty()) return problem;
        return shape_at_ == shape_.size() ? std::string_view{} : "coordinates nested otherwise than the type says";
    }

private:
    static constexpr int most_depth = 4;

    std::string_view body(family kind, geometry_builder& to) {
        switch (kind) {
            case family::point: return peek() == '(' ? nothing() : position(to);
            case family::linestring:
            case family::multipoint: return positions(to);
            case family::polygon: return rings(to);
            case family::multilinestring: return list([&] { return to.begin_line(), positions(to); });
            case family::multipolygon: return list([&] { return to.begin_polygon(), rings(to); });
            case family::mixed: break;
        }
        return {};
    }
    std::string_view nothing() {
        return list([] { return std::string_view{"a list where a position should be"}; });
    }
    std::string_view rings(geometry_builder& to) {
        return list([&] { return to.begin_ring(), positions(to); });
    }
    std::string_view positions(geometry_builder& to) {
        return list([&] { return position(to); });
    }
    std::string_view position(geometry_builder& to) {
        if (peek() != '.') return "a list where a position should be";
        ++shape_at_;
        auto const [x, y] = positions_[position_at_++];
        to.vertex(x, y);
        return {};
    }
    template <class One>
    std::string_view list(One one) {
        if (peek() != '(') return "a position where a list should be";
        for (++shape_at_; peek() != ')';)
            if (auto const problem = one(); !problem.empty()) return problem;
        ++shape_at_;
        return {};
    }
    [[nodiscard]] char peek() const noexcept { return shape_at_ < shape_.size() ? shape_[shape_at_] : ')'; }

    std::string shape_;  // ( and ), and . for a position
    std::vector<std::pair<double, double>> positions_;
    int depth_ = 0, numbers_ = 0;
    bool has_heights_ = false;  // any position so far
    std::size_t shape_at_ = 0, position_at_ = 0;
};

// "EPSG:3035" of "urn:ogc:def:crs:EPSG::3035", with or without a version.
std::string short_crs(std::string const& name) {
    if (!name.starts_with(long_crs)) return name;
    auto const authority = name.substr(long_crs.size(), name.find(':', long_crs.size()) - long_crs.size());
    return authority + name.substr(name.rfind(':'));
}
// What nlohmann's parser calls.
class reader {
public:
    reader(text_source const& from, read_options const& how) : in_{from}, how_{how} {}

    result<rows_of_file> read() {
        char const* reached = in_.text.data();
        char const* const end = reached + in_.text.size();
        reached_ = &reached;
        while (reached != end) {
            if (is_blank(*reached)) {
                ++reached;
                continue;
            }
            // One text, or several after another: a Feature per line, as RFC 8142 has them.
            json::sax_parse(watched{reached, &reached}, watched{end, &reached}, this, json::input_format_t::json,
                            false);
            if (problem_) return std::move(*problem_);
            if (++texts_ > 1 && had_collection_) return wrong("text after the FeatureCollection");
        }
        if (texts_ == 0) return refuse(errc::invalid_argument, in_, 1, "no GeoJSON here: the text is empty");
        KILN_CHECK(check_name());
        KILN_TRY(out_.rows, to_.finish());
        out_.ids_are_text = how_.id.empty() || has_text_name_;
        out_.has_heights = tree_.has_heights();
        return std::move(out_);
    }

    bool null() {
        if (in_coordinates()) return no("null among the coordinates");
        if (is_row()) {  // nothing where a row should be: a row without anything
            to_.null();
            finish_row();
            finish_name();
            return true;
        }
        if (is_geometry_of_feature()) {
            if (std::exchange(objects_.back().has_geometry, true)) return no("two geometries in one Feature");
            to_.null();
            finish_row();
        }
        return true;
    }
    bool boolean(bool v) {
        (void)name(v ? "true" : "false");
        return in_coordinates() ? no("a truth value among the coordinates") : is_no_geometry();
    }
    bool number_integer(json::number_integer_t v) {
        (void)name(std::to_string(v));
        return in_coordinates() ? coordinate(static_cast<double>(v)) : is_no_geometry();
    }
    bool number_unsigned(json::number_unsigned_t v) {
        (void)name(std::to_string(v));
        return in_coordinates() ? coordinate(static_cast<double>(v)) : is_no_geometry();
    }
    bool number_float(double v, std::string const& text) {
        (void)name(shortest(v));
        if (v == 0 && in_coordinates() && number_at(text).kind == number_kind::beyond_doubles)
            return no(fmt::format("'{}' is beyond what a double holds", shown(text)));
        return in_coordinates() ? coordinate(v) : is_no_geometry();
    }
    bool string(std::string& v) {
        if (in_coordinates()) return no("text among the coordinates");
        if (skipping_ == 0 && !objects_.empty() && key_ == "type" && objects_.back().what != object::properties)
            objects_.back().type = v;
        has_text_name_ |= name(v);
        return is_no_geometry();
    }
    bool binary(json::binary_t&) { return true; }

    bool key(std::string& v) {
        if (skipping_ > 0) return true;
        key_ = v;
        if (has_name_ || how_.id.empty() || objects_.empty()) return true;
        auto const what = objects_.back().what;
        bool const is_id = v == "id" && (what == object::feature || what == object::text);
        has_name_ = v == how_.id && (what == object::properties || is_id);
        constexpr std::size_t most_names = 1000;
        bool const is_one = (what == object::properties || is_id) && names_.size() < most_names;
        if (is_one && std::find(names_.begin(), names_.end(), v) == names_.end()) names_.push_back(v);
        return true;
    }
    bool start_object(std::size_t) {
        if (skipping_ > 0) return ++skipping_, true;
        if (in_coordinates()) return no("an object among the coordinates");
        if (is_name()) return no(fmt::format("the property '{}' is an object, which is no name", shown(key_)));
        if (objects_.empty()) return objects_.push_back({object::text}), true;
        auto& parent = objects_.back();
        if (parent.what == object::features) return objects_.push_back({object::feature}), true;
        bool const may_be_feature = parent.what == object::feature || parent.what == object::text;
        if (may_be_feature && key_ == "geometry") {
            if (std::exchange(parent.has_geometry, true)) return no("two geometries in one Feature");
            return objects_.push_back({object::geometry}), true;
        }
        if (may_be_feature && key_ == "properties") begin_ = *reached_ - 1;
        if (may_be_feature && key_ == "properties" && (!how_.id.empty() || keeps_properties()))
            return objects_.push_back({object::properties}), true;
        if (parent.what == object::text && key_ == "crs") begin_ = *reached_ - 1, is_crs_ = true;
        return ++skipping_, true;
    }
    bool end_object() {
        if (skipping_ > 0) {
            if (--skipping_ == 0 && std::exchange(is_crs_, false)) take_crs({begin_, *reached_});
            return true;
        }
        auto const done = std::move(objects_.back());
        objects_.pop_back();
        key_.clear();
        switch (done.what) {
            case object::geometry: return end_geometry(done);
            case object::feature: return end_feature(done);
            case object::text: return end_text(done);
            case object::properties: properties_.assign(begin_, *reached_); return true;
            default: return true;
        }
    }
    bool start_array(std::size_t) {
        if (skipping_ > 0) return ++skipping_, true;
        if (in_coordinates()) return check(tree_.open());
        if (objects_.empty()) return no("an array; GeoJSON begins with an object");
        auto& parent = objects_.back();
        if (parent.what == object::features) return no("an array among the features");
        if (is_name()) return no(fmt::format("the property '{}' is an array, which is no name", shown(key_)));
        bool const may_be_geometry = parent.what == object::geometry || parent.what == object::text;
        if (may_be_geometry && key_ == "coordinates") {
            if (std::exchange(parent.has_coordinates, true)) return no("coordinates twice in one geometry");
            tree_.clear();
            return check(tree_.open());
        }
        if (parent.what == object::text && key_ == "features") {
            if (std::exchange(parent.has_features, true)) return no("features twice in one FeatureCollection");
            return objects_.push_back({object::features}), true;
        }
        if (may_be_geometry && key_ == "geometries") return not_taken("GeometryCollection");
        if (!is_no_geometry()) return false;
        return ++skipping_, true;
    }
    bool end_array() {
        if (skipping_ > 0) return --skipping_, true;
        if (in_coordinates()) return check(tree_.close());
        objects_.pop_back();  // features
        return true;
    }
    bool parse_error(std::size_t, std::string const&, json::exception const& e) {
        // "[json.exception...] parse error at line 1, column 5: what it is"
        std::string_view words{e.what()};
        if (auto const at = words.find("] "); at != words.npos) words.remove_prefix(at + 2);
        if (auto const at = words.find(": "); words.starts_with("parse error") && at != words.npos)
            words.remove_prefix(at + 2);
        constexpr std::size_t most = 200;
        return no(fmt::format("not JSON: {}{}", words.substr(0, most), words.size() > most ? "..." : ""));
    }

private:
    struct object {
        enum kind : std::uint8_t { text, features, feature, geometry, properties } what;
        std::string type = {};
        bool has_geometry = false, has_coordinates = false, has_features = false;
    };

    static bool is_blank(char c) noexcept {
        return c == ' ' || c == '\t' || c == '\r' || c == '\n' ||
               c == '\x1e';  // the last one: before each text of a sequence
    }
    [[nodiscard]] bool in_coordinates() const noexcept { return skipping_ == 0 && tree_.is_open(); }
    [[nodiscard]] bool is_geometry_of_feature() const noexcept {
        return skipping_ == 0 && !objects_.empty() && key_ == "geometry" &&
               (objects_.back().what == object::feature || objects_.back().what == object::text);
    }
    // Where a whole Feature should be: among the features, or as a text of its own.
    [[nodiscard]] bool is_row() const noexcept {
        return skipping_ == 0 && (objects_.empty() || objects_.back().what == object::features);
    }
    bool is_no_geometry() {
        if (is_row()) return no("a number, text or truth value where a Feature should be");
        return is_geometry_of_feature() ? no("a geometry that is neither an object nor null") : true;
    }
    bool coordinate(double v) { return check(tree_.number(v)); }
    [[nodiscard]] bool keeps_properties() const noexcept { return how_.properties == read_options::extras::kept; }
    // {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3035"}}, of the standard before RFC 7946.
    void take_crs(std::string_view text) {
        auto const all = json::parse(text, nullptr, false);
        auto const name = all.is_object() ? all.value("/properties/name"_json_pointer, json{}) : json{};
        if (name.is_string()) out_.crs = short_crs(name.get<std::string>());
    }

    // Whether what comes is the property that names the rows.
    [[nodiscard]] bool is_name() const noexcept {
        return !how_.id.empty() && skipping_ == 0 && !objects_.empty() && objects_.back().what == object::properties &&
               key_ == how_.id;
    }
    // A name that no row has is a slip of whoever asked for it.
    result<void> check_name() {
        if (how_.id.empty() || has_name_ || out_.lines.empty()) return {};
        return fail(errc::invalid_argument, "{}: no Feature has a property '{}'; there are: {}", in_.name, how_.id,
                    names_.empty() ? "none" : shown_names(names_));
    }
    // A value that may be the name of its row.
    bool name(std::string const& value) {
        if (how_.id.empty() || skipping_ > 0 || tree_.is_open() || objects_.empty() || key_ != how_.id) return false;
        bool const is_property = objects_.back().what == object::properties;
        bool const is_id = key_ == "id" && objects_.back().what != object::geometry && !name_is_property_;
        if (!is_property && !is_id) return false;
        name_ = value, name_is_property_ |= is_property;
        return true;
    }
    // The row's text is read; its name may still come, in the rest of the Feature.
    void finish_row() { out_.lines.push_back(line()); }
    void finish_name() {
        ++ended_;
        if (!how_.id.empty()) out_.ids.push_back(std::move(name_));
        if (keeps_properties()) out_.properties.push_back(std::move(properties_));
        name_.clear(), name_is_property_ = false, properties_.clear();
    }

    bool end_geometry(object const& done) {
        auto const* const kind = family_named(done.type);
        if (done.type.empty()) return no("a geometry without a type");
        if (kind == nullptr) return not_taken(done.type);
        if (!done.has_coordinates) return no(fmt::format("a {} without coordinates", done.type));
        to_.begin(*kind);
        if (auto const problem = tree_.write(*kind, to_); !problem.empty())
            return no(fmt::format("{} ({})", problem, done.type));
        to_.end();
        finish_row();
        return true;
    }
    bool end_feature(object const& done) {
        if (done.type != "Feature")
            return no(fmt::format("a member of \"features\" of type '{}', not 'Feature'", shown(done.type)));
        if (!done.has_geometry) return no("a Feature without a geometry; one that has none says null");
        finish_name();
        return true;
    }
    bool end_text(object const& done) {
        if (done.type == "FeatureCollection") {
            had_collection_ = true;
            if (done.has_geometry || done.has_coordinates) return no("a FeatureCollection with a geometry of its own");
            return done.has_features ? true : no("a FeatureCollection without features");
        }
        if (done.has_features) return no(fmt::format("features in an object of type '{}'", shown(done.type)));
        if (done.type == "Feature") return end_feature(done);
        if (done.has_geometry) return no(fmt::format("a geometry in an object of type '{}'", shown(done.type)));
        if (!end_geometry(done)) return false;
        finish_name();
        return true;
    }

    bool check(std::string_view problem) { return problem.empty() || no(problem); }
    std::uint32_t line() {
        line_ += static_cast<std::uint32_t>(std::count(counted_, *reached_, '\n'));
        counted_ = *reached_;
        return line_;
    }
    error wrong(std::string_view what) {
        return refuse(errc::invalid_argument, in_, line(), "row {}: {}", ended_, what);
    }
    bool no(std::string_view what) {
        problem_ = wrong(what);
        return false;
    }
    bool not_taken(std::string_view type) {
        problem_ = refuse(errc::unsupported, in_, line(), "row {}: '{}' is none of the six families of simple features",
                          ended_, shown(type));
        return false;
    }

    text_source in_;
    read_options const& how_;
    char const** reached_ = nullptr;
    char const* counted_ = in_.text.data();  // lines up to here
    std::uint32_t line_ = 1;
    std::size_t texts_ = 0, skipping_ = 0;  // brackets deep in what nobody asked for
    std::size_t ended_ = 0;                 // rows whose Feature is at its end, not only its geometry
    bool had_collection_ = false, name_is_property_ = false, has_name_ = false;
    std::vector<std::string> names_;  // of properties, as long as the one that is asked for has not been seen
    std::vector<object> objects_;
    char const* begin_ = nullptr;  // of the properties, or of a CRS, that are read
    bool is_crs_ = false, has_text_name_ = false;
    std::string key_, name_, properties_;
    coordinate_tree tree_;
    geometry_builder to_;
    rows_of_file out_;
    std::optional<error> problem_;
};

}  // namespace

result<rows_of_file> read_geojson(text_source const& from, read_options const& how) { return reader{from, how}.read(); }

}  // namespace kiln::spatial
