// SPDX-License-Identifier: Apache-2.0
// Areas put over each other on a device: the host's bits.
#include "spatial_fixture.hpp"
#include "unit/spatial/overlay_samples.hpp"

#include <kiln/event.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/overlay.hpp>

#include <bit>
#include <cmath>
#include <numbers>

namespace kiln::device_tests {

namespace {

class spatial_overlay : public on_spatial_device {
protected:
    // On the host, in the mode that is asked for.
    template <class Call>
    static auto here(Call const& call) {
        scoped_execution_mode const cpu{execution_mode::cpu};
        return call().value();
    }
    void check(result<geometries> made, geometries const& expected, std::string const& name) {
        auto const there = take(std::move(made));
        EXPECT_EQ(there.where(), residency::device);
        EXPECT_EQ(to_wkt(there.to_host_sync(on()).value()).value(), to_wkt(expected).value()) << name;
    }
    void check_all(geometries const& a, geometries const& b, std::string const& name) {
        auto const a_there = there(a), b_there = there(b);
        for (auto const what : {overlay_kind::intersection, overlay_kind::union_, overlay_kind::difference,
                                overlay_kind::symmetric_difference, overlay_kind::identity, overlay_kind::update}) {
            if (quickest() && what != overlay_kind::union_) continue;  // the kernels are the same
            auto const made = take(overlay(on(), a_there, b_there, what));
            auto const expected = here([&] { return overlay({}, a, b, what); });
            auto const label = name + " " + std::string{name_of(what)};
            EXPECT_EQ(values_of(made.left), spatial_tests::values_of(expected.left)) << label;
            EXPECT_EQ(values_of(made.right), spatial_tests::values_of(expected.right)) << label;
            check(made.rows, expected.rows, label);
        }
        check(union_all(on(), a_there), here([&] { return union_all({}, a); }), name + " union_all");
        auto const mended = take(mend(on(), b_there)), expected_rows = here([&] { return mend({}, b); });
        check(mended.rows, expected_rows.rows, name + " make_valid");
        EXPECT_EQ(values_of(mended.was_valid), spatial_tests::values_of(expected_rows.was_valid)) << name;
        std::vector<std::int32_t> keys(a.rows());
        for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<std::int32_t>(i % 5) - 1;
        auto const key = buffer<std::int32_t>::copy_of(keys);
        check(dissolve(on(), a_there, key, 4), here([&] { return dissolve({}, a, key, 4); }), name + " dissolve");
        if (a.rows() == b.rows()) {
            check(overlay_row_by_row(on(), a_there, b_there, overlay_kind::symmetric_difference),
                  here([&] { return overlay_row_by_row({}, a, b, overlay_kind::symmetric_difference); }),
                  name + " row by row");
            auto const bits = [](std::vector<double> const& values) {
                std::vector<std::uint64_t> out;
                for (double const v : values) out.push_back(std::bit_cast<std::uint64_t>(v));
                return out;
            };
            EXPECT_EQ(bits(values_of(take(iou(on(), a_there, b_there)))),
                      bits(spatial_tests::values_of(here([&] { return iou({}, a, b); }))))
                << name;
        }
        auto const table = take(area_table(on(), a_there, b_there));
        auto const expected = here([&] { return area_table({}, a, b); });
        EXPECT_EQ(values_of(table.area), spatial_tests::values_of(expected.area)) << name;
    }
};

// Rings in general position that cross each other all over.
geometries rosettes(std::size_t rows, double at) {
    geometry_builder to;
    for (std::size_t i = 0; i < rows; ++i) {
        double const x = at + std::fmod(static_cast<double>(i) * 0.7548776662, 1),
                     y = std::fmod(static_cast<double>(i) * 0.5698402910, 1);
        to.begin(family::polygon), to.begin_ring();
        int const corners = 48;
        for (int k = 0; k <= corners; ++k) {
            double const angle = 2 * std::numbers::pi * (k % corners) / corners;
            double const far = 0.05 + 0.02 * std::sin(5 * angle + static_cast<double>(i));
            to.vertex(x + far * std::cos(angle), y + far * std::sin(angle));
        }
        to.end();
    }
    return to.finish().value();
}

}  // namespace

TEST_F(spatial_overlay, is_that_of_the_host) {
    std::size_t const rows = quick() ? 12 : 80;
    check_all(
        lattice(family::polygon, {.rows = rows, .size = 16, .seed = 5, .empty_per_mille = 50, .null_per_mille = 50}),
        lattice(family::multipolygon, {.rows = rows, .size = 16, .seed = 6, .null_per_mille = 50}), "lattice");
    if (!quickest()) check_all(rosettes(rows, 0), rosettes(rows, 0.01), "rosettes");
}

// Keys come to rest by their own crossings, or are put onto grids of their own, beside one that is far away.
TEST_F(spatial_overlay, that_does_not_come_to_rest_is_that_of_the_host) {
    auto text = to_wkt(spatial_tests::nearly_the_same(quickest() ? 60 : 900, 3)).value();
    std::vector<std::int32_t> keys(text.size());
    auto const count = static_cast<std::int32_t>(text.size() / 3);
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<std::int32_t>(i * 7 % text.size()) / 3;
    text.emplace_back("POLYGON ((1e15 0, 1e15 100, 1e14 100, 1e15 0))"), keys.push_back(count);
    auto const rows = from_wkt(text).value();
    auto const key = buffer<std::int32_t>::copy_of(keys);
    auto const all = static_cast<std::size_t>(count) + 1;
    std::vector<std::int64_t> snapped;
    auto const token = event_log::process().subscribe([&](event const& e) {
        if (e.reason.view() == "snapped") snapped.push_back(e.value);
    });
    auto const expected = here([&] { return dissolve({}, rows, key, all); });
    check(dissolve(on(), there(rows), key, all), expected, "keys");
    ASSERT_EQ(snapped.size(), 2U);
    EXPECT_EQ(snapped[0], snapped[1]);
    EXPECT_LT(snapped[0], count);
}

// In chunks, at home on the device or on the host, it is the same.
TEST_F(spatial_overlay, in_chunks_is_that_at_once) {
    std::size_t const rows = quick() ? 40 : 400;
    auto const a = rosettes(rows, 0), b = rosettes(rows, 0.01);
    auto const a_there = there(a), b_there = there(b);
    std::size_t chunks = 0;
    auto const token = event_log::process().subscribe([&](event const& e) {
        if (e.reason.view() == "in-chunks") chunks += static_cast<std::size_t>(e.value);
    });
    std::vector<std::int32_t> keys(a.rows());
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<std::int32_t>(i / 5);
    auto const key = buffer<std::int32_t>::copy_of(keys);
    scoped_execution_mode const gpu{execution_mode::gpu};
    // What the layer takes at home is less than half of the first, and more than half of the second.
    auto const items = a.rows() + a.vertices() + b.rows() + b.vertices();
    for (std::size_t const most : {items * 480, items * 300}) {
        for (auto const what : {overlay_kind::union_, overlay_kind::update}) {
            if (quickest() && what != overlay_kind::union_) continue;
            auto const label = std::string{name_of(what)} + " in " + std::to_string(most);
            auto const whole = take(overlay(on(), a_there, b_there, what));
            chunks = 0;
            auto const made = take(overlay(on(), a_there, b_there, what, {.most_bytes = most}));
            EXPECT_GT(chunks, 2U) << label;
            EXPECT_EQ(values_of(made.left), values_of(whole.left)) << label;
            check(made.rows, whole.rows.to_host_sync(on()).value(), label);
            auto const here = take(overlay(on(), a, b, what, {.most_bytes = most}));
            EXPECT_EQ(here.rows.where(), residency::host);
            EXPECT_EQ(to_wkt(here.rows).value(), to_wkt(whole.rows.to_host_sync(on()).value()).value()) << label;
        }
        auto const own = most / 2;
        check(dissolve(on(), a_there, key, rows / 5, {.most_bytes = own}),
              take(dissolve(on(), a_there, key, rows / 5)).to_host_sync(on()).value(), "dissolve");
        check(make_valid(on(), a_there, {.most_bytes = own}),
              take(make_valid(on(), a_there)).to_host_sync(on()).value(), "make_valid");
    }
}

TEST_F(spatial_overlay, of_real_layers_is_that_of_the_host) {
    auto const a = real_layer("ne110");
    if (!a || quick()) GTEST_SKIP() << "no ne110, or no time";
    check_all(*a, *a, "ne110");
}

TEST_F(spatial_overlay, of_counties_has_their_areas) {
    auto const a = real_layer("county2010"), b = real_layer("county2016");
    if (!a || !b || quick()) GTEST_SKIP() << "no counties, or no time";
    auto const a_there = there(*a), b_there = there(*b);
    auto const table = take(area_table(on(), a_there, b_there));
    EXPECT_EQ(table.size(), values_of(table.area).size());
    auto const total = [&](geometries const& of) {
        double sum = 0;
        for (double const v : values_of(take(area(on(), of)))) sum += std::isnan(v) ? 0 : v;
        return sum;
    };
    double common = 0;
    for (double const v : values_of(table.area)) common += v;
    double const one = total(a_there);
    double const alone = total(take(overlay(on(), a_there, b_there, overlay_kind::difference)).rows);
    EXPECT_NEAR(common + alone, one, 1e-10 * one);
    // Rows of 2010 overlap each other in places, so what is in them is not counted from their areas.
    double const others = total(take(overlay(on(), b_there, a_there, overlay_kind::difference)).rows);
    double const both = total(take(overlay(on(), a_there, b_there, overlay_kind::union_)).rows);
    EXPECT_NEAR(both, common + alone + others, 1e-10 * one);
}

}  // namespace kiln::device_tests
