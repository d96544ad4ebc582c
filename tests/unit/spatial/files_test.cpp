// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/files.hpp>
#include <kiln/spatial/wkt.hpp>

#include "base/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;
using testing::ElementsAre;
using testing::HasSubstr;

rows_of_file read(std::string_view text, std::string_view name, read_options const& how = {}) {
    return read_text(text, name, how).value();
}
std::vector<std::string> rows(std::string_view text, std::string_view name, read_options const& how = {}) {
    return to_wkt(read(text, name, how).rows).value();
}
std::string why(std::string_view text, std::string_view name, read_options const& how = {}) {
    auto const got = read_text(text, name, how);
    return got ? "read" : got.error().message();
}

std::vector<std::string> const of_all_families{
    "POINT (1 2)",
    "LINESTRING (0 0, 1 1.5, 1e+80 -0.1)",
    "POLYGON ((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
    "NULL",
    "MULTIPOINT ((1 2), (3 4))",
    "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3, 4 5))",
    "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1)), ((9 9, 8 9, 8 8, 9 9)))",
    "POINT EMPTY",
    "LINESTRING EMPTY",
    "POLYGON EMPTY",
    "MULTIPOINT EMPTY",
    "MULTILINESTRING EMPTY",
    "MULTIPOLYGON EMPTY",
};

std::string feature(std::string const& geometry) {
    return R"({"type":"FeatureCollection","features":[{"type":"Feature","properties":null,"geometry":)" + geometry +
           "}]}";
}

}  // namespace

TEST(files, properties_are_kept_as_they_are_written) {
    std::string_view const text = R"({"features": [
{"properties": { "a" : {"b": [1, "}"]}, "n": 1.50 }, "geometry": null, "type": "Feature"},
{"geometry": {"coordinates": [1, 2], "type": "Point"}, "type": "Feature", "properties": null},
{"type": "Feature", "properties": {}, "geometry": null, "id": 7}, null],
"crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG:8.9:3035"}}, "type": "FeatureCollection"})";
    auto const skipped = read(text, "a.geojson");
    EXPECT_TRUE(skipped.properties.empty());
    EXPECT_EQ(skipped.crs, "EPSG:3035");
    for (auto const* const id : {"", "id", "n"}) {
        auto const kept = read(text, "a.geojson", {.id = id, .properties = read_options::extras::kept});
        EXPECT_THAT(kept.properties, ElementsAre(R"({ "a" : {"b": [1, "}"]}, "n": 1.50 })", "", "{}", ""));
    }
    auto const kept = read(text, "a.geojson", {.properties = read_options::extras::kept});
    auto const written = to_geojson(kept.rows, kept.properties, kept.crs).value();
    auto const again = read(written, "b.geojson", {.properties = read_options::extras::kept});
    EXPECT_EQ(again.crs, "EPSG:3035");
    EXPECT_EQ(again.properties.front(), kept.properties.front());
    EXPECT_EQ(to_geojson(kept.rows, {}, "EPSG:4326").value(), to_geojson(kept.rows).value());
    EXPECT_EQ(read(R"({"type":"Point","coordinates":[1,2]})", "a.json", {.properties = read_options::extras::kept})
                  .properties.size(),
              1U);
}

TEST(files, geojson_and_wkb_give_back_what_was_written) {
    auto const all = from_wkt(of_all_families).value();
    EXPECT_EQ(rows(to_geojson(all).value(), "a.geojson"), of_all_families);
    EXPECT_EQ(rows(to_wkb_lines(all).value(), "a.wkb"), of_all_families);
    for (auto const& one : of_all_families) {
        auto const g = from_wkt(std::vector{one}).value();
        EXPECT_THAT(rows(to_geojson(g).value(), "a.json"), ElementsAre(one));
    }
}

TEST(geojson, members_come_in_any_order_and_properties_go_by) {
    EXPECT_THAT(rows(R"({"features":[
        {"geometry":{"coordinates":[[0,0],[1,1]],"type":"LineString","bbox":[0,0,1,1]},"properties":{"a":{"geometry":{"type":"x"},
            "coordinates":[[[[[[1]]]]]],"b":[1,2,{"features":[]}]}},"type":"Feature"},
        {"type":"Feature","geometry":null,"properties":{"coordinates":[1]}}],"bbox":[[1]],"crs":{"type":"name"},"type":"FeatureCollection"})",
                     "a.geojson"),
                ElementsAre("LINESTRING (0 0, 1 1)", "NULL"));
    EXPECT_THAT(
        rows(R"({"type":"Feature","geometry":{"type":"Point","coordinates":[1,2,300]},"properties":{}})", "text"),
        ElementsAre("POINT (1 2)"));
    EXPECT_THAT(rows(R"({"coordinates":[-1e2,2.5],"type":"Point"})", "text"), ElementsAre("POINT (-100 2.5)"));
    EXPECT_THAT(rows(R"({"type":"FeatureCollection","features":[]})", "text"), ElementsAre());
}

TEST(geojson, one_text_per_line) {
    auto const got =
        read("{\"type\":\"Point\",\"coordinates\":[1,2]}\n\x1e{\"type\":\"Feature\",\"geometry\":null,\"id\":7}\n",
             "a.geojsonl", {.id = "id"});
    EXPECT_THAT(to_wkt(got.rows).value(), ElementsAre("POINT (1 2)", "NULL"));
    EXPECT_THAT(got.ids, ElementsAre("", "7"));
    EXPECT_THAT(got.lines, ElementsAre(1U, 2U));
}

TEST(geojson, names_are_a_property_or_the_id) {
    std::string const text = R"({"type":"FeatureCollection","features":[
        {"type":"Feature","id":"f1","properties":{"name":"Chad","deep":{"name":"no"}},"geometry":{"type":"Point","coordinates":[1,2]}},
        {"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"id":2,"properties":{"name":4.5}},
        {"type":"Feature","geometry":null,"properties":{"id":true}}]})";
    EXPECT_THAT(read(text, "t", {.id = "name"}).ids, ElementsAre("Chad", "4.5", ""));
    EXPECT_THAT(read(text, "t", {.id = "id"}).ids, ElementsAre("f1", "2", "true"));
    EXPECT_TRUE(read(text, "t").ids.empty());
}

TEST(geojson, a_name_that_no_row_has_is_refused_with_those_there_are) {
    std::string const text = R"({"type":"FeatureCollection","features":[
        {"type":"Feature","id":1,"properties":{"state":"TX","deep":{"in":1},"none":null},"geometry":null},
        {"type":"Feature","properties":{"county":[1]},"geometry":{"type":"Point","coordinates":[1,2]}}]})";
    EXPECT_EQ(why(text, "t", {.id = "sate"}),
              "t: no Feature has a property 'sate'; there are: id, state, deep, none, county");
    EXPECT_THAT(why(text, "t", {.id = "in"}), HasSubstr("no Feature has")) << "inside of another";
    EXPECT_THAT(read(text, "t", {.id = "none"}).ids, ElementsAre("", "")) << "null is no name";
    EXPECT_THAT(why(text, "t", {.id = "deep"}), HasSubstr("t, line 2: row 0: the property 'deep' is an object"));
    EXPECT_THAT(why(text, "t", {.id = "county"}), HasSubstr("t, line 3: row 1: the property 'county' is an array"));
    EXPECT_THAT(why(R"({"type":"Point","coordinates":[1,2]})", "t", {.id = "a"}), HasSubstr("there are: none"));
    EXPECT_TRUE(read(R"({"type":"FeatureCollection","features":[]})", "t", {.id = "a"}).ids.empty());
}

TEST(geojson, null_among_the_features_is_a_null_row) {
    auto const got =
        read(R"({"type":"FeatureCollection","features":[null,{"type":"Feature","id":7,"geometry":{"type":"Point",
        "coordinates":[1,2]}}]})",
             "t", {.id = "id"});
    EXPECT_THAT(to_wkt(got.rows).value(), ElementsAre("NULL", "POINT (1 2)"));
    EXPECT_THAT(got.ids, ElementsAre("", "7"));
    EXPECT_EQ(got.lines.size(), 2U);
    EXPECT_THAT(rows("null\n{\"type\":\"Point\",\"coordinates\":[1,2]}\nnull\n", "a.geojsonl"),
                ElementsAre("NULL", "POINT (1 2)", "NULL"));
    for (auto const* const one : {"5", "\"text\"", "true", "1.5", "-3"}) {
        EXPECT_THAT(why(R"({"type":"FeatureCollection","features":[)" + std::string{one} + "]}", "t"),
                    HasSubstr("t, line 1: row 0: a number, text or truth value where a Feature should be"));
        EXPECT_THAT(why(one, "t.json"), HasSubstr("where a Feature should be"));
    }
}

// One reader of numbers: what no double can hold is refused by all formats, and neither 0 nor infinite in one of them.
TEST(files, numbers_are_the_same_in_all_formats) {
    for (std::string const number : {"1e-400", "-1e-400", "1e400", "0.00001e-350"}) {
        EXPECT_THAT(why("POINT (1 " + number + ")\n", "a.wkt"),
                    HasSubstr("'" + number + "' at column 10 is beyond what a double"));
        EXPECT_THAT(why("x,y\n1," + number + "\n", "a.csv"),
                    HasSubstr("'" + number + "' in column y is beyond what a double"));
        EXPECT_THAT(why(feature(R"({"type":"Point","coordinates":[1,)" + number + "]}"), "a.json"), HasSubstr(number));
    }
    for (std::string const number : {"0e-400", "-0.0", "0.000"}) {
        EXPECT_EQ(why("POINT (1 " + number + ")\n", "a.wkt"), "read");
        EXPECT_EQ(why("x,y\n1," + number + "\n", "a.csv"), "read");
        EXPECT_EQ(why(feature(R"({"type":"Point","coordinates":[1,)" + number + "]}"), "a.json"), "read");
    }
    EXPECT_THAT(why("x,y\n1,+-2\n", "a.csv"), HasSubstr("is no number"));
}

TEST(files, a_byte_order_mark_is_no_text) {
    std::string const mark = "\xef\xbb\xbf";
    EXPECT_THAT(rows(mark + "POINT (1 2)\n", "a.wkt"), ElementsAre("POINT (1 2)"));
    EXPECT_THAT(rows(mark + "0101000000000000000000F03F0000000000000040\n", "a.wkb"), ElementsAre("POINT (1 2)"));
    EXPECT_THAT(rows(mark + "x,y\n1,2\n", "a.csv"), ElementsAre("POINT (1 2)"));
    EXPECT_THAT(rows(mark + R"({"type":"Point","coordinates":[1,2]})", "a.json"), ElementsAre("POINT (1 2)"));
}

TEST(files, of_a_long_word_errors_show_the_beginning) {
    std::string const word(1'000'000, 'A');
    EXPECT_LT(why(word + " (1 2)\n", "a.wkt").size(), 300U);
    EXPECT_LT(why("x,y\n1," + word + "\n", "a.csv").size(), 300U);
    EXPECT_LT(why(word + "," + word + "\n1,2\n", "a.csv").size(), 500U);
    EXPECT_LT(why(feature(R"({"type":")" + word + R"(","coordinates":[1,2]})"), "a.json").size(), 300U);
    EXPECT_LT(why("{" + word + "}", "a.json").size(), 400U);
}

TEST(geojson, says_what_is_wrong_and_where) {
    auto const wrong = [](std::string const& geometry) { return why(feature(geometry), "z.geojson"); };
    EXPECT_THAT(wrong(R"({"type":"Polygon","coordinates":[[0,0],[1,1]]})"),
                HasSubstr("z.geojson, line 1: row 0: a position where a list"));
    EXPECT_THAT(wrong(R"({"type":"LineString","coordinates":[[[0,0],[1,1]]]})"), HasSubstr("a list where a position"));
    EXPECT_THAT(wrong(R"({"type":"Point","coordinates":[[0,0]]})"), HasSubstr("a list where a position"));
    EXPECT_THAT(wrong(R"({"type":"Point","coordinates":[0]})"), HasSubstr("a position of one number"));
    EXPECT_THAT(wrong(R"({"type":"Point","coordinates":[0,"1"]})"), HasSubstr("text among the coordinates"));
    EXPECT_THAT(wrong(R"({"type":"Point","coordinates":[0,null]})"), HasSubstr("null among the coordinates"));
    EXPECT_THAT(wrong(R"({"type":"Point","coordinates":[0,{}]})"), HasSubstr("an object among the coordinates"));
    EXPECT_THAT(wrong(R"({"type":"Point","coordinates":[0,[1]]})"), HasSubstr("an array among the numbers"));
    EXPECT_THAT(wrong(R"({"type":"LineString","coordinates":[[0,1],2]})"), HasSubstr("a number among positions"));
    EXPECT_THAT(wrong(R"({"type":"MultiPolygon","coordinates":[[[[[0,1]]]]]})"), HasSubstr("more than four deep"));
    EXPECT_THAT(wrong(R"({"type":"Point"})"), HasSubstr("a Point without coordinates"));
    EXPECT_THAT(wrong(R"({"coordinates":[1,2]})"), HasSubstr("without a type"));
    EXPECT_THAT(wrong(R"({"type":"GeometryCollection","geometries":[]})"),
                HasSubstr("'GeometryCollection' is none of the six"));
    EXPECT_THAT(wrong(R"({"type":"Circle","coordinates":[1,2]})"), HasSubstr("'Circle' is none of the six"));
    EXPECT_THAT(wrong(R"([1,2])"), HasSubstr("neither an object nor null"));
    EXPECT_THAT(wrong(R"(3)"), HasSubstr("neither an object nor null"));
    EXPECT_THAT(wrong(R"({"type":"Point","coordinates":[1,2],"coordinates":[1,2]})"), HasSubstr("coordinates twice"));
    EXPECT_THAT(wrong(R"({"type":"Point","coordinates":[1,1e999]})"), HasSubstr("not JSON"));
    EXPECT_THAT(wrong(R"({"type":"Point","coordinates":[1,1e308]})"), HasSubstr("row 0"));
    EXPECT_THAT(wrong(R"({"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1]]]})"), HasSubstr("is open"));
    EXPECT_THAT(why(R"({"type":"FeatureCollection","features":[{"type":"Feature","properties":{}}]})", "z.json"),
                HasSubstr("without a geometry"));
    EXPECT_THAT(why(R"({"type":"FeatureCollection","features":[{"type":"Point","coordinates":[1,2],"geometry":null}]})",
                    "z.json"),
                HasSubstr("of type 'Point', not 'Feature'"));
    EXPECT_THAT(why(R"({"type":"Feature","geometry":null,"geometry":null})", "z.json"),
                HasSubstr("row 0: two geometries"));
    EXPECT_THAT(why(R"({"type":"FeatureCollection"})", "z.json"), HasSubstr("without features"));
    EXPECT_THAT(why(R"({"features":[]})", "z.json"), HasSubstr("features in an object of type ''"));
    EXPECT_THAT(why(R"({"type":"FeatureCollection","features":[]} 1)", "z.json"), HasSubstr("z.json, line 1"));
    EXPECT_THAT(why("{\n\"type\": \n]", "z.json"), HasSubstr("z.json, line 3: row 0: not JSON: syntax error"));
    EXPECT_THAT(why("[1]", "z.json"), HasSubstr("begins with an object"));
    EXPECT_THAT(why("", "z.json"), HasSubstr("the text is empty"));
    EXPECT_THAT(why("{\"a\":\"\xff\"}", "z.json"), HasSubstr("not JSON"));
}

TEST(csv, takes_points_and_text) {
    EXPECT_THAT(rows("x,y\n1,2\n-0.5,+1e3\n", "p.csv"), ElementsAre("POINT (1 2)", "POINT (-0.5 1000)"));
    EXPECT_THAT(rows("\xef\xbb\xbfname;LON;Lat\r\n\"a;b\";1;2\r\nc;;\r\n\r\n", "p.csv"),
                ElementsAre("POINT (1 2)", "NULL"));
    EXPECT_THAT(rows("wkt\nPOINT (1 2)\n\nPOINT (3 4)\n  \n", "p.csv"),
                ElementsAre("POINT (1 2)", "NULL", "POINT (3 4)", "NULL"))
        << "of one column, as in .wkt";
    EXPECT_THAT(rows("id\twkt\n1\tPOINT (1 2)\n2\tNULL", "p.tsv"), ElementsAre("POINT (1 2)", "NULL"));
    auto const got = read("name,geometry\n\"say \"\"hi\"\"\",\"LINESTRING (0 0,\n1 1)\"\nplain,POINT EMPTY\n", "q.csv",
                          {.id = "Name"});
    EXPECT_THAT(to_wkt(got.rows).value(), ElementsAre("LINESTRING (0 0, 1 1)", "POINT EMPTY"));
    EXPECT_THAT(got.ids, ElementsAre("say \"hi\"", "plain"));
    EXPECT_THAT(got.lines, ElementsAre(2U, 4U));
    EXPECT_THAT(rows("a,b\n1,2\n", "p.csv", {.x = "b", .y = "a"}), ElementsAre("POINT (2 1)"));
    EXPECT_THAT(rows("a,shape\n1,POINT (3 4)\n", "p.csv", {.wkt = "shape"}), ElementsAre("POINT (3 4)"));
}

TEST(csv, says_what_is_wrong_and_where) {
    EXPECT_THAT(why("x,y\n1,2\n3,four\n", "p.csv"), HasSubstr("p.csv, line 3: row 1: 'four' in column y is no number"));
    EXPECT_THAT(why("x,y\n1\n", "p.csv"), HasSubstr("line 2: row 0: 1 fields where the first line has 2"));
    EXPECT_THAT(why("x,y\n1,\n", "p.csv"), HasSubstr("'' in column y is no number"));
    EXPECT_THAT(why("x,y\n1,2 3\n", "p.csv"), HasSubstr("'2 3'"));
    EXPECT_THAT(why("x,y\nnan,3\n", "p.csv"), HasSubstr("line 2: row 0"));
    EXPECT_THAT(why("x,y\n1e309,3\n", "p.csv"), HasSubstr("'1e309' in column x is beyond what a double holds"));
    EXPECT_THAT(why("x,y\n1e308,3\n", "p.csv"), HasSubstr("line 2: row 0"));
    EXPECT_THAT(why("a,b\n1,2\n", "p.csv"),
                HasSubstr("no column wkt, geometry, x and y, or lon and lat; there are: a, b"));
    EXPECT_THAT(why("x,y\n1,2\n", "p.csv", {.x = "x"}), HasSubstr("a column for x and none for y"));
    EXPECT_THAT(why("x,y\n1,2\n", "p.csv", {.id = "name"}), HasSubstr("no column 'name'"));
    EXPECT_THAT(why("x,y\n\"1,2\n", "p.csv"), HasSubstr("line 2: a quoted field without an end"));
    EXPECT_THAT(why("x,y\n\"1\"2,2\n", "p.csv"), HasSubstr("'2' after a quoted field"));
    EXPECT_THAT(why("n,wkt\n\"a\nb\",POINT (1 x)\n", "p.csv"),
                HasSubstr("p.csv, line 2: WKT, row 0, column 10: a number expected"));
    EXPECT_THAT(why("", "p.csv"), HasSubstr("the text is empty"));
    EXPECT_THAT(why("x,y,x\n1,2,3\n", "p.csv"), HasSubstr("p.csv, line 1: two columns 'x'"));
    EXPECT_THAT(why("wkt,WKT,n,n\nPOINT (1 2),NULL,1,2\n", "p.csv", {.id = "n"}), HasSubstr("two columns 'n'"));
    EXPECT_THAT(why("N,N,x,y\n1,2,3,4\n", "p.csv", {.id = "n"}), HasSubstr("two columns 'n'"));
    EXPECT_THAT(rows("x,X,y,n,n\n1,2,3,4,4\n", "p.csv"), ElementsAre("POINT (1 3)")) << "the one that is written so";
}

TEST(files, are_known_by_name_or_by_how_they_begin) {
    EXPECT_THAT(rows("x,y\n1,2\n", "points"), ElementsAre("POINT (1 2)"));
    EXPECT_THAT(rows("POINT (1 2)\n\nNULL\n", "points"), ElementsAre("POINT (1 2)", "NULL", "NULL"));
    EXPECT_THAT(rows("0101000000000000000000F03F0000000000000040\n", "points"), ElementsAre("POINT (1 2)"));
    EXPECT_THAT(why("hello\n", "points"), HasSubstr("points: neither its name nor its first line says what it is"));
    // A GeoPackage is no CSV, whatever commas are in it.
    EXPECT_THAT(why(std::string{"SQLite format 3\0, a,b\n1,2\n", 27}, "layer.gpkg"),
                HasSubstr("layer.gpkg: neither its name nor its first line says what it is"));
    EXPECT_THAT(why("POINT (1 2)\n", "p.wkt", {.id = "name"}), HasSubstr("rows of wkt have no names"));
    EXPECT_THAT(why("POINT (0 0)\nPOINT (1\n", "p.wkt"), HasSubstr("p.wkt, line 2: WKT, row 1, column 9"));
    EXPECT_THAT(why("POINT (0 0)\nPOLYGON ((0 0, 1 0, 1 1, 0 1))\n", "p.wkt"),
                HasSubstr("p.wkt, line 2: row 1: ring 0 is open"));
    EXPECT_THAT(why("01010\n", "p.wkb"), HasSubstr("p.wkb, line 1: row 0: an odd number of digits"));
    EXPECT_THAT(why("01xx\n", "p.wkb"), HasSubstr("'x' is no hexadecimal digit"));
    EXPECT_THAT(why("0101000000\n", "p.wkb"), HasSubstr("the row ends within a geometry"));
    EXPECT_THAT(read_file("/nonexistent/zones.wkt").error().message(), HasSubstr("/nonexistent/zones.wkt"));
}

// Cut off, or with one byte changed: read or refused with its line, never worse. (The sanitizers look on.)
TEST(files, survive_whatever_is_in_them) {
    auto const all = from_wkt(of_all_families).value();
    std::vector<std::pair<std::string, std::string>> const texts = {
        {"a.geojson", to_geojson(all).value()},
        {"a.wkb", to_wkb_lines(all).value()},
        {"a.csv", "name,wkt\n\"a \"\"b\"\"\",\"POLYGON ((0 0, 1 0, 1 1, 0 0))\"\nc,MULTIPOINT (1 2)\n"},
        {"b.csv", "x,y\n1,2\n3,4\n"},
    };
    std::mt19937 random{7};
    for (auto const& [name, text] : texts) {
        for (std::size_t cut = 0; cut < text.size(); ++cut) EXPECT_NE(why(text.substr(0, cut), name), "");
        for (int i = 0; i < 4000; ++i) {
            auto changed = text;
            for (auto n = 1 + random() % 3; n > 0; --n)
                changed[random() % changed.size()] = static_cast<char>(random());
            auto const said = why(changed, name);
            EXPECT_TRUE(said == "read" || said.starts_with(name)) << said;
        }
    }
    std::string deep(200'000, '[');
    EXPECT_THAT(why(R"({"type":"Point","coordinates":)" + deep, "d.json"), HasSubstr("more than four deep"));
    EXPECT_THAT(why(R"({"type":"Feature","properties":)" + deep, "d.json"), HasSubstr("not JSON"));
}

}  // namespace kiln::spatial_tests
