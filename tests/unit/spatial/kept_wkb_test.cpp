// SPDX-License-Identifier: Apache-2.0
// Well-known binary by the device's text, run on the host: the bytes of the host's writer, and what its reader takes and refuses.
#include "samples.hpp"
#include "spatial/choose.hpp"
#include "spatial/wkb_rows.hpp"

#include <kiln/spatial/wkt.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;

std::vector<std::uint8_t> bytes_of(column<std::uint8_t> const& c) {
    return {c.values().data(), c.values().data() + c.values().size()};
}
std::vector<std::int32_t> offsets_of(column<std::uint8_t> const& c) {
    return {c.offsets()->data(), c.offsets()->data() + c.offsets()->size()};
}
column<std::uint8_t> column_of(std::vector<std::vector<std::uint8_t>> const& rows) {
    std::vector<std::uint8_t> all;
    std::vector<std::int32_t> offsets{0};
    for (auto const& r : rows) {
        all.insert(all.end(), r.begin(), r.end());
        offsets.push_back(static_cast<std::int32_t>(all.size()));
    }
    return column<std::uint8_t>::lists(buffer<std::uint8_t>::copy_of(all), buffer<std::int32_t>::copy_of(offsets));
}

void check(geometries const& g, std::string const& name) {
    auto const expected = to_wkb(g).value();
    for (auto const order : {item_order::ascending, item_order::scrambled}) {
        host_queue on{order};
        auto const written = write_wkb(on, g).value();
        EXPECT_EQ(bytes_of(written), bytes_of(expected)) << name;
        EXPECT_EQ(offsets_of(written), offsets_of(expected)) << name;
        for (std::size_t i = 0; i < g.rows(); ++i) EXPECT_EQ(written.is_null(i), g.is_null(i)) << name << " " << i;
        auto const read = read_wkb(on, expected).value();
        auto const by_host = from_wkb(expected).value();
        EXPECT_EQ(read.kind(), by_host.kind()) << name;
        EXPECT_EQ(to_wkt(read).value(), to_wkt(by_host).value()) << name;
    }
}

}  // namespace

TEST(kept_wkb, is_that_of_the_host) {
    std::vector<std::string> mixed{"NULL"};
    for (int k = 1; k <= 6; ++k) {
        auto const g = lattice(static_cast<family>(k),
                               {.rows = 50, .size = 9, .seed = 8, .empty_per_mille = 100, .null_per_mille = 100});
        check(g, std::string{name_of(g.kind())});
        std::vector<std::int32_t> rows;
        for (int i = 0; i < 70; ++i) rows.push_back(i * 13 % 50);
        check(g.view(buffer<std::int32_t>::copy_of(rows)).value(), "view");
        for (auto const& row : to_wkt(g).value()) mixed.push_back(row);
    }
    check(from_wkt(mixed).value(), "mixed");
    check(from_wkt(std::vector<std::string>{"NULL", "NULL"}).value(), "nulls");
    check(from_wkt(std::vector<std::string>{"POINT (-0.0 1e-300)", "POINT EMPTY"}).value(), "zeros");
    check(from_wkt(
              std::vector<std::string>{
                  "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0), (0.5 0.2, 0.6 0.2, 0.6 0.3, 0.5 0.2)), ((5 5, 6 5, 6 6, 5 5)))",
                  "MULTIPOLYGON EMPTY", "MULTIPOLYGON (((7 7, 8 7, 8 8, 7 7)))"})
              .value(),
          "multipolygons");
    check(geometries{}, "no rows");
    // Of points alone, whatever their last word of eight bytes has of them.
    std::vector<std::string> points;
    for (int i = 0; i < 9; ++i) {
        points.push_back("POINT (" + std::to_string(i) + ".25 -7.5)");
        check(from_wkt(points).value(), std::to_string(i) + " points");
    }
}

// Every way to be wrong, at every byte: taken or refused as the host does, and nothing outside of the row is read.
TEST(kept_wkb, refuses_what_the_host_refuses) {
    std::vector<std::vector<std::uint8_t>> good;
    for (auto const* const text :
         {"POINT (1 2)", "LINESTRING (0 0, 1 1)", "POLYGON ((0 0, 1 0, 1 1, 0 0))", "MULTIPOINT ((1 1), (2 2))",
          "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3))", "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))"})
        good.push_back(bytes_of(to_wkb(from_wkt(std::vector<std::string>{text}).value()).value()));
    std::size_t refused = 0, taken = 0;
    auto const compare = [&](std::vector<std::uint8_t> const& row) {
        auto const all = column_of({good[0], row});
        host_queue on;
        auto const here = read_wkb(on, all);
        auto const host = from_wkb(all);
        ASSERT_EQ(here.has_value(), host.has_value()) << (host ? "taken" : host.error().message());
        if (here) {
            ++taken;
            EXPECT_EQ(to_wkt(*here).value(), to_wkt(*host).value());
            return;
        }
        ++refused;
        EXPECT_EQ(here.error().code(), host.error().code())
            << here.error().message() << " | " << host.error().message();
        EXPECT_THAT(here.error().message(), testing::HasSubstr("WKB, row 1"));
    };
    for (auto const& row : good) {
        for (std::size_t n = 0; n < row.size(); ++n)
            compare({row.begin(), row.begin() + static_cast<std::ptrdiff_t>(n)});
        for (std::size_t at = 0; at < row.size(); ++at) {
            for (int const v : {0, 1, 2, 3, 7, 0x20, 0x40, 0x80, 0xff}) {
                auto changed = row;
                changed[at] = static_cast<std::uint8_t>(v);
                compare(changed);
            }
        }
        auto longer = row;
        longer.push_back(0);
        compare(longer);
    }
    EXPECT_GT(refused, 500U);
    EXPECT_GT(taken, 500U);
    host_queue on;
    auto const wrong = column<std::uint8_t>::lists(buffer<std::uint8_t>::copy_of(good[0]),
                                                   buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{0, 99}));
    EXPECT_EQ(read_wkb(on, wrong).error().code(), errc::corrupt);
}

// Big-endian rows, and EWKB with an SRID.
TEST(kept_wkb, takes_either_byte_order_and_an_srid) {
    std::vector<std::uint8_t> const big{0, 0, 0, 0, 1, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0};
    std::vector<std::uint8_t> const srid{1, 1, 0,    0,    0x20, 0xe6, 0x10, 0, 0, 0, 0, 0,   0,
                                         0, 0, 0xf0, 0x3f, 0,    0,    0,    0, 0, 0, 0, 0x40};
    host_queue on;
    EXPECT_THAT(to_wkt(read_wkb(on, column_of({big, srid})).value()).value(),
                testing::ElementsAre("POINT (1 2)", "POINT (1 2)"));
    // A ring from the right to the left, between two that are the other way round.
    std::vector<std::uint8_t> ring{0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 4};
    for (std::uint8_t const high : std::vector<std::uint8_t>{0, 0, 0x40, 0, 0x40, 0x40, 0, 0})
        ring.insert(ring.end(), {high, 0, 0, 0, 0, 0, 0, 0});
    auto const little =
        bytes_of(to_wkb(from_wkt(std::vector<std::string>{"POLYGON ((5 5, 6 5, 6 6, 5 5))"}).value()).value());
    EXPECT_THAT(to_wkt(read_wkb(on, column_of({little, ring, little})).value()).value(),
                testing::ElementsAre("POLYGON ((5 5, 6 5, 6 6, 5 5))", "POLYGON ((0 0, 2 0, 2 2, 0 0))",
                                     "POLYGON ((5 5, 6 5, 6 6, 5 5))"));
}

// Offsets that go back are wrong in null rows as well: rows behind them would lie over others.
TEST(kept_wkb, refuses_offsets_of_null_rows_that_go_back) {
    auto const points = to_wkb(from_wkt(std::vector<std::string>{"POINT (1 2)", "POINT (3 4)"}).value()).value();
    auto const all = column<std::uint8_t>::lists(points.values(),
                                                 buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{0, 42, 0, 42}),
                                                 buffer<std::uint8_t>::copy_of(std::vector<std::uint8_t>{0b101}));
    host_queue on;
    EXPECT_EQ(read_wkb(on, all).error().code(), errc::corrupt);
}

}  // namespace kiln::spatial_tests
