// SPDX-License-Identifier: Apache-2.0
#include "device/prims/prims_fixture.hpp"

namespace kiln {
struct vec3 {
    float x, y, z;
    std::int32_t count;
    double sum;
};
template <>
struct device_type<vec3> {
    static constexpr std::string_view name = "vec3",
                                      definition = "struct vec3 { float x, y, z; int count; double sum; };";
};
}  // namespace kiln

namespace kiln::device_tests {

namespace {

op const add_vec3 = op::function("add",
                                 "__device__ vec3 add(vec3 a, vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, "
                                 "a.count + b.count, a.sum + b.sum}; }");
vec3 add_on_host(vec3 a, vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.count + b.count, a.sum + b.sum}; }

class scans : public prims_test {
protected:
    template <class T, class Reference>
    void check_scan(scan_handle<T> const& exclusive, scan_handle<T> const& inclusive, std::vector<T> const& data,
                    Reference by, T init) {
        auto const n = data.size();
        device_vector<T> const in{on(), data};
        device_vector<T> out{n};
        std::vector<T> expected(n);
        out.poison(on());
        exclusive(on(), in.in(), out.span(), {.init = init}).value();
        cpu::exclusive_scan<T>(data, std::span<T>{expected}, by, init);
        EXPECT_TRUE(equals(exclusive.name(), expected, out.get(on())));
        out.poison(on());
        inclusive(on(), in.in(), out.span()).value();
        cpu::inclusive_scan<T>(data, std::span<T>{expected}, by);
        EXPECT_TRUE(equals(inclusive.name(), expected, out.get(on())));
        EXPECT_TRUE(equals("input", data, in.get(on())));
    }

    template <class T>
    void check_type() {
        auto const [sum, sums, top, tops] =
            make_together([] { return exclusive_scan<T>(plus); }, [] { return inclusive_scan<T>(plus); },
                          [] { return exclusive_scan<T>(kiln::max); }, [] { return inclusive_scan<T>(kiln::max); });
        for (auto const n : sizes_around(sum.tile_items())) {
            check_scan<T>(sum, sums,
                          std::is_integral_v<T> ? make_data<T>(n, pattern::random, n + 1) : walk_data<T>(n, n + 1),
                          cpu::plus, cpu::from_number<T>(3));
            for (auto const p : all_patterns) {
                if (n > 4 * sum.tile_items() && p != pattern::random && p != pattern::special) continue;
                check_scan<T>(top, tops, make_data<T>(n, p, n + 2), cpu::max, special_value<T>(n));
            }
        }
    }
};

}  // namespace

TEST_F(scans, of_8_and_16_bit_integers) {
    check_type<std::int8_t>();
    check_type<std::uint8_t>();
    check_type<std::int16_t>();
    check_type<std::uint16_t>();
}
TEST_F(scans, of_32_and_64_bit_integers) {
    check_type<std::int32_t>();
    check_type<std::uint32_t>();
    check_type<std::int64_t>();
    check_type<std::uint64_t>();
}
TEST_F(scans, of_floats) {
    check_type<f16>();
    check_type<bf16>();
    check_type<float>();
    check_type<double>();
}

TEST_F(scans, of_structs) {
    auto const [exclusive, inclusive] =
        make_together([&] { return exclusive_scan<vec3>(add_vec3); }, [&] { return inclusive_scan<vec3>(add_vec3); });
    for (auto const n : sizes_around(exclusive.tile_items())) {
        auto const walk = walk_data<float>(n, n);
        std::vector<vec3> data(n);
        for (std::size_t i = 0; i < n; ++i) data[i] = {walk[i], walk[n - 1 - i], 0, 1, walk[i]};
        check_scan<vec3>(exclusive, inclusive, data, add_on_host, {1, 2, 3, 4, 5});
    }
}

TEST_F(scans, by_an_operator_that_does_not_commute) {
    op const last_there_is{"b != 0 ? b : a"};
    auto const by = [](std::int32_t a, std::int32_t b) { return b != 0 ? b : a; };
    auto const [exclusive, inclusive] = make_together([&] { return exclusive_scan<std::int32_t>(last_there_is); },
                                                      [&] { return inclusive_scan<std::int32_t>(last_there_is); });
    for (auto const n : sizes_around(exclusive.tile_items())) {
        auto data = make_data<std::int32_t>(n, pattern::random, n);
        numbers g{n};
        for (auto& value : data)
            if (g.next() % 100 != 0) value = 0;
        check_scan<std::int32_t>(exclusive, inclusive, data, by, 7);
    }
}

TEST_F(scans, in_place) {
    auto const sum = made(exclusive_scan<std::int32_t>(plus));
    auto const data = make_data<std::int32_t>(100'003, pattern::random, 5);
    device_vector<std::int32_t> const both{on(), data};
    sum(on(), both.in(), both.span()).value();
    std::vector<std::int32_t> expected(data.size());
    cpu::exclusive_scan<std::int32_t>(data, std::span{expected}, cpu::plus);
    EXPECT_TRUE(equals("in place", expected, both.get(on())));
}

TEST_F(scans, refuse_an_output_that_is_too_small) {
    auto const sum = made(exclusive_scan<std::int32_t>(plus));
    device_vector<std::int32_t> const in{100};
    EXPECT_EQ(sum(on(), in.in(), {in.data(), 99}).error().code(), errc::invalid_argument);
}

namespace {

class reductions : public prims_test {
protected:
    template <class T, class Reference>
    void check_reduce(reduce_handle<T> const& reduce, std::vector<T> const& data, Reference by, T init,
                      std::string const& what) {
        device_vector<T> const in{on(), data};
        check_reduce<T>(reduce, in.in(), data, by, init, what);
    }

    template <class T, class Reference>
    void check_reduce(reduce_handle<T> const& reduce, device_span<T const> in, std::vector<T> const& data, Reference by,
                      T init, std::string const& what) {
        device_vector<T> out{1};
        out.poison(on());
        reduce(on(), in, out.data(), {.init = init}).value();
        EXPECT_TRUE(equals(what, std::vector<T>{cpu::reduce<T>(data, by, init)}, out.get(on())));
    }

    // Input that begins anywhere: wide loads are for what is aligned.
    template <class T>
    void check_beginnings() {
        auto const sum = made(reduce<T>(plus));
        for (auto const n : sizes_around(sum.tile_items())) {
            auto const data = make_data<T>(n, pattern::random, n);
            for (std::size_t const skipped : {1, 2, 3, 5}) {
                if (skipped > n) continue;
                device_vector<T> const in{on(), data};
                check_reduce<T>(sum, {in.data() + skipped, n - skipped},
                                {data.begin() + static_cast<long>(skipped), data.end()}, cpu::plus, T{5},
                                at(sum.name(), n, pattern::random) + ", from " + std::to_string(skipped));
            }
        }
    }

    template <class T>
    void check_type() {
        auto const [sum, least, most] = make_together(
            [] { return reduce<T>(plus); }, [] { return reduce<T>(kiln::min); }, [] { return reduce<T>(kiln::max); });
        for (auto const n : sizes_around(sum.tile_items())) {
            auto const exact =
                std::is_integral_v<T> ? make_data<T>(n, pattern::random, n + 1) : sparse_data<T>(n, n + 1);
            check_reduce<T>(sum, exact, cpu::plus, cpu::from_number<T>(5), at(sum.name(), n, pattern::random));
            for (auto const p : all_patterns) {
                auto const data = make_data<T>(n, p, n + 2);
                check_reduce<T>(least, data, cpu::min, special_value<T>(n), at(least.name(), n, p));
                check_reduce<T>(most, data, cpu::max, special_value<T>(n + 1), at(most.name(), n, p));
            }
        }
    }
};

}  // namespace

TEST_F(reductions, of_8_and_16_bit_integers) {
    check_type<std::int8_t>();
    check_type<std::uint8_t>();
    check_type<std::int16_t>();
    check_type<std::uint16_t>();
}
TEST_F(reductions, of_32_and_64_bit_integers) {
    check_type<std::int32_t>();
    check_type<std::uint32_t>();
    check_type<std::int64_t>();
    check_type<std::uint64_t>();
}
TEST_F(reductions, of_floats) {
    check_type<f16>();
    check_type<bf16>();
    check_type<float>();
    check_type<double>();
}

TEST_F(reductions, of_what_begins_anywhere) {
    check_beginnings<std::uint8_t>();
    check_beginnings<std::int32_t>();
    check_beginnings<std::uint64_t>();
}

TEST_F(reductions, of_structs) {
    auto const sum = made(reduce<vec3>(add_vec3));
    for (auto const n : sizes_around(sum.tile_items())) {
        auto const walk = walk_data<float>(n, n);
        std::vector<vec3> data(n);
        for (std::size_t i = 0; i < n; ++i) data[i] = {walk[i], static_cast<float>(i % 2), 0, 1, 1.0 / 1024};
        check_reduce<vec3>(sum, data, add_on_host, {1, 2, 3, 4, 5}, at(sum.name(), n, pattern::random));
    }
}

TEST_F(reductions, by_bits_and_products) {
    auto const [all, any, odd, product] =
        make_together([] { return reduce<std::uint32_t>(bit_and); }, [] { return reduce<std::uint32_t>(bit_or); },
                      [] { return reduce<std::uint32_t>(bit_xor); }, [] { return reduce<std::uint32_t>(multiply); });
    for (auto const n : sizes_around(all.tile_items())) {
        auto const data = make_data<std::uint32_t>(n, pattern::random, n);
        check_reduce<std::uint32_t>(all, data, cpu::bit_and, ~0U, at("bit_and", n, pattern::random));
        check_reduce<std::uint32_t>(any, data, cpu::bit_or, 0U, at("bit_or", n, pattern::random));
        check_reduce<std::uint32_t>(odd, data, cpu::bit_xor, 7U, at("bit_xor", n, pattern::random));
        check_reduce<std::uint32_t>(product, data, cpu::multiply, 3U, at("multiply", n, pattern::random));
    }
}

namespace {

class segments : public prims_test {
protected:
    // Offsets whose lengths `length` gives, up to n items.
    template <class Offset, class Length>
    static std::vector<Offset> offsets_by(std::size_t n, Length length) {
        std::vector<Offset> out{0};
        for (std::size_t i = 0; static_cast<std::size_t>(out.back()) < n; ++i) {
            out.push_back(static_cast<Offset>(std::min(n, static_cast<std::size_t>(out.back()) + length(i))));
        }
        return out;
    }

    template <class T, class Offset, class Reference>
    void check_segments(segmented_reduce_handle<T> const& reduce, std::vector<T> const& data,
                        std::vector<Offset> const& offsets, Reference by, T init, std::string const& what) {
        device_vector<T> const in{on(), data};
        device_vector<Offset> const where{on(), offsets};
        device_vector<T> out{offsets.size() - 1};
        out.poison(on());
        reduce(on(), in.in(), where.span(), out.span(), {.init = init}).value();
        std::vector<T> expected(offsets.size() - 1);
        cpu::segmented_reduce<T, Offset>(data, offsets, std::span<T>{expected}, by, init);
        EXPECT_TRUE(equals(what, expected, out.get(on())));
    }

    template <class T>
    void check_type() {
        auto const [sum, least, most] =
            make_together([] { return segmented_reduce<T>(plus); }, [] { return segmented_reduce<T>(kiln::min); },
                          [] { return segmented_reduce<T>(kiln::max); });
        std::size_t const n = quick() ? 20'000 : 400'000;
        numbers g{3};
        auto const check = [&](char const* name, auto const& offsets) {
            check_segments<T>(sum, std::is_integral_v<T> ? make_data<T>(n, pattern::random, 1) : sparse_data<T>(n, 1),
                              offsets, cpu::plus, cpu::from_number<T>(2), sum.name() + ", " + name);
            check_segments<T>(least, make_data<T>(n, pattern::special, 2), offsets, cpu::min, special_value<T>(1),
                              least.name() + ", " + name);
            check_segments<T>(most, make_data<T>(n, pattern::random, 3), offsets, cpu::max, special_value<T>(0),
                              most.name() + ", " + name);
        };
        check("empty and short", offsets_by<std::uint32_t>(n, [&](std::size_t) { return g.next() % 9; }));
        check("of 8", offsets_by<std::int64_t>(n, [](std::size_t) { return std::size_t{8}; }));
        check("short with some long",
              offsets_by<std::uint32_t>(n, [&](std::size_t i) { return i % 301 == 300 ? 3000 : g.next() % 20; }));
        check("middling", offsets_by<std::int32_t>(n, [&](std::size_t) { return g.next() % 300; }));
        check("middling with some long",
              offsets_by<std::int64_t>(n, [&](std::size_t i) { return i % 50 == 49 ? 5000 : g.next() % 200; }));
        check("long", offsets_by<std::uint32_t>(n, [&](std::size_t) { return 2000 + g.next() % 9000; }));
        check("one", std::vector<std::uint32_t>{0, static_cast<std::uint32_t>(n)});
        check("none of anything", std::vector<std::uint32_t>{0, 0, 0, 0});
    }
};

}  // namespace

TEST_F(segments, of_floats) {
    check_type<double>();
    check_type<float>();
    check_type<f16>();
}
TEST_F(segments, of_integers) {
    check_type<std::int8_t>();
    check_type<std::int32_t>();
    check_type<std::uint64_t>();
}
TEST_F(segments, without_any) {
    auto const sum = made(segmented_reduce<double>(plus));
    device_vector<double> const none{0};
    device_vector<std::uint32_t> const offset{on(), std::vector<std::uint32_t>{0}};
    EXPECT_TRUE(sum(on(), none.in(), offset.span(), none.span()));
}

}  // namespace kiln::device_tests
