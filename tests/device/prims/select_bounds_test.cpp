// SPDX-License-Identifier: Apache-2.0
#include "device/prims/prims_fixture.hpp"

namespace kiln {
struct blob24 {
    std::uint64_t a, b, c;
};
template <>
struct device_type<blob24> {
    static constexpr std::string_view name = "blob24", definition = "struct blob24 { unsigned long long a, b, c; };";
};
}  // namespace kiln

namespace kiln::device_tests {

namespace {

enum class density { none, some, half, all };
constexpr density all_densities[] = {density::none, density::some, density::half, density::all};

std::vector<std::uint8_t> make_mask(std::size_t n, density d, std::uint64_t seed) {
    std::vector<std::uint8_t> out(n);
    numbers g{seed};
    for (auto& byte : out) {
        auto const r = g.next();
        bool const keep =
            d == density::all || (d == density::half && r % 2 == 0) || (d == density::some && r % 1000 == 0);
        byte = keep ? static_cast<std::uint8_t>(1 + r % 255) : 0;  // any value but 0 counts
    }
    return out;
}

class selections : public prims_test {
protected:
    template <class T>
    void expect(std::string const& what, std::vector<T> expected, std::size_t kept, device_vector<T> const& out,
                device_vector<std::uint64_t> const& count) {
        ASSERT_EQ(count.get(on()).front(), kept) << what;
        expected.resize(kept);
        EXPECT_TRUE(equals(what, expected, out.get(on(), kept)));
    }

    template <class T>
    void check_items() {
        auto const keep = made(select<T>());
        for (auto const n : sizes_around(keep.tile_items())) {
            std::vector<T> data(n);
            numbers g{n + 1};
            for (auto& value : data) value = any_value<T>(g.next());
            for (auto const d : all_densities) {
                auto const mask = make_mask(n, d, n + 2);
                device_vector<T> const in{on(), data};
                device_vector<std::uint8_t> const flags{on(), mask};
                device_vector<T> out{n};
                device_vector<std::uint64_t> count{1};
                count.poison(on());
                keep(on(), in.in(), flags.data(), out.data(), count.data()).value();
                std::vector<T> expected(n);
                auto const kept = cpu::select<T>(data, mask, expected);
                expect(keep.name() + " of " + std::to_string(n), expected, kept, out, count);
            }
        }
    }

    template <class Index>
    void check_indices() {
        auto const keep = made(select_indices<Index>());
        for (auto const n : sizes_around(keep.tile_items())) {
            for (auto const d : all_densities) {
                auto const mask = make_mask(n, d, n + 3);
                device_vector<std::uint8_t> const flags{on(), mask};
                device_vector<Index> out{n};
                device_vector<std::uint64_t> count{1};
                count.poison(on());
                keep(on(), flags.in(), out.data(), count.data()).value();
                std::vector<Index> expected(n);
                auto const kept = cpu::select_indices<Index>(mask, expected);
                expect(keep.name() + " of " + std::to_string(n), expected, kept, out, count);
            }
        }
    }

    template <class T>
    void check_if(op const& by, auto const& reference) {
        auto const keep = made(select_if<T>(by));
        for (auto const n : sizes_around(keep.tile_items())) {
            for (auto const p : {pattern::random, pattern::special}) {
                auto const data = make_data<T>(n, p, n + 4);
                device_vector<T> const in{on(), data};
                device_vector<T> out{n};
                device_vector<std::uint64_t> count{1};
                keep(on(), in.in(), out.data(), count.data()).value();
                std::vector<T> expected(n);
                auto const kept = cpu::select_if<T>(data, expected, reference);
                expect(at(keep.name(), n, p), expected, kept, out, count);
            }
        }
    }
};

}  // namespace

TEST_F(selections, by_mask) {
    check_items<std::uint8_t>();
    check_items<std::int16_t>();
    check_items<float>();
    check_items<double>();
    check_items<blob24>();
}
TEST_F(selections, of_indices_by_mask) {
    check_indices<std::int32_t>();
    check_indices<std::uint32_t>();
    check_indices<std::int64_t>();
}
TEST_F(selections, by_a_condition) {
    check_if<std::int32_t>(op{"a % 3 == 0"}, [](std::int32_t a) { return a % 3 == 0; });
    check_if<std::uint64_t>(op{"a < s"}.with(std::uint64_t{1} << 62),
                            [](std::uint64_t a) { return a < (std::uint64_t{1} << 62); });
    check_if<float>(op{"a > s"}.with(0.5F), [](float a) { return a > 0.5F; });
    check_if<double>(op{"a == a"}, [](double a) { return a == a; });
    check_if<std::int8_t>(op{"a & 1"}, [](std::int8_t a) { return (a & 1) != 0; });
}
TEST_F(selections, of_indices_by_a_condition) {
    std::size_t const n = 100'000;
    auto const data = make_data<std::int32_t>(n, pattern::random, 9);
    device_vector<std::int32_t> const values{on(), data};
    auto const keep = made(select_indices_if<std::uint32_t>(
        op{"static_cast<int const*>(s)[a] > 0"}.with(static_cast<void*>(values.data()))));
    device_vector<std::uint32_t> out{n};
    device_vector<std::uint64_t> count{1};
    keep(on(), n, out.data(), count.data()).value();
    std::vector<std::uint32_t> expected(n);
    auto const kept = cpu::select_indices_if<std::uint32_t>(n, expected, [&](std::uint32_t i) { return data[i] > 0; });
    expect("indices if", expected, kept, out, count);
}

namespace {

class bound_searches : public prims_test {
protected:
    template <class T, class Index>
    void check_bounds() {
        auto const [lower, upper] = make_together([] { return lower_bound<T>(); }, [] { return upper_bound<T>(); });
        for (std::size_t const n : {0UL, 1UL, 2UL, 3UL, 255UL, 256UL, 257UL, 100'003UL}) {
            for (auto const p : {pattern::random, pattern::all_equal}) {
                auto sorted = make_data<T>(n, p, n + 1);
                std::sort(sorted.begin(), sorted.end(), cpu::less);
                std::size_t const m = quick() ? 1000 : 50'001;
                auto queries = make_data<T>(m, pattern::random, n + 2);
                for (std::size_t i = 0; i < m && n > 0; i += 2) queries[i] = sorted[i * 7919 % n];
                queries[0] = special_value<T>(1);
                device_vector<T> const in{on(), sorted};
                device_vector<T> const wanted{on(), queries};
                device_vector<Index> out{m};
                std::vector<Index> expected(m);
                out.poison(on());
                lower(on(), in.in(), wanted.in(), out.span()).value();
                cpu::lower_bound<T, Index>(sorted, queries, expected);
                EXPECT_TRUE(equals(at(lower.name(), n, p), expected, out.get(on())));
                upper(on(), in.in(), wanted.in(), out.span()).value();
                cpu::upper_bound<T, Index>(sorted, queries, expected);
                EXPECT_TRUE(equals(at(upper.name(), n, p), expected, out.get(on())));
            }
        }
    }
};

}  // namespace

TEST_F(bound_searches, in_sorted_numbers) {
    check_bounds<std::int32_t, std::uint32_t>();
    check_bounds<std::int32_t, std::int64_t>();
    check_bounds<std::uint64_t, std::uint32_t>();
    check_bounds<float, std::int32_t>();
    check_bounds<double, std::uint64_t>();
    check_bounds<std::uint8_t, std::uint32_t>();
}

TEST_F(bound_searches, of_many_queries) {
    // Around the least range that pivots are used for, and beyond what is searched through a sample.
    auto const [lower, upper] =
        make_together([] { return lower_bound<std::int32_t>(); }, [] { return upper_bound<std::int32_t>(); });
    std::size_t const m = (std::size_t{1} << 19) + 5;
    for (std::size_t const n : {16'383UL, 16'384UL, 16'385UL, 1'000'003UL, 8'388'609UL, 9'999'991UL}) {
        if (quick() && n > 20'000) continue;
        auto sorted = make_data<std::int32_t>(n, pattern::random, n);
        for (auto& v : sorted) v /= 64;  // with repeats
        std::sort(sorted.begin(), sorted.end());
        auto queries = make_data<std::int32_t>(m, pattern::random, n + 1);
        for (auto& q : queries) q /= 60;  // some beyond both ends
        for (std::size_t i = 0; i < m; i += 2) queries[i] = sorted[i * 7919 % n];
        queries[1] = sorted.front();
        queries[3] = sorted.back();
        device_vector<std::int32_t> const in{on(), sorted};
        device_vector<std::int32_t> const wanted{on(), queries};
        device_vector<std::uint32_t> out{m};
        std::vector<std::uint32_t> expected(m);
        out.poison(on());
        lower(on(), in.in(), wanted.in(), out.span()).value();
        cpu::lower_bound<std::int32_t, std::uint32_t>(sorted, queries, expected);
        EXPECT_TRUE(equals("lower bound in " + std::to_string(n), expected, out.get(on())));
        upper(on(), in.in(), wanted.in(), out.span()).value();
        cpu::upper_bound<std::int32_t, std::uint32_t>(sorted, queries, expected);
        EXPECT_TRUE(equals("upper bound in " + std::to_string(n), expected, out.get(on())));
    }
}

TEST_F(bound_searches, of_many_queries_of_wide_values) {
    // Fewer pivots below 2^22 queries, all of them from there on.
    auto const [lower, upper] = make_together([] { return lower_bound<blob24>(op{"a.a < b.a"}); },
                                              [] { return upper_bound<blob24>(op{"a.a < b.a"}); });
    auto const less = [](blob24 const& a, blob24 const& b) { return a.a < b.a; };
    for (std::size_t const m : {(std::size_t{1} << 19) + 5, (std::size_t{1} << 22) + 1}) {
        if (quick() && m > 1'000'000) continue;
        std::size_t const n = m - 3;
        std::vector<blob24> sorted(n), queries(m);
        for (std::size_t i = 0; i < n; ++i) sorted[i] = {2 * (i / 3), i, ~i};  // with repeats and gaps
        numbers g{m};
        for (auto& q : queries) q = {g.next() % n, 0, 0};
        device_vector<blob24> const in{on(), sorted}, wanted{on(), queries};
        device_vector<std::uint32_t> out{m};
        std::vector<std::uint32_t> expected(m);
        auto const expect = [&](auto bound) {
            for (std::size_t i = 0; i < m; ++i)
                expected[i] = static_cast<std::uint32_t>(bound(queries[i]) - sorted.begin());
        };
        out.poison(on());
        lower(on(), in.in(), wanted.in(), out.span()).value();
        expect([&](blob24 const& q) { return std::lower_bound(sorted.begin(), sorted.end(), q, less); });
        EXPECT_TRUE(equals("lower bound in " + std::to_string(n), expected, out.get(on())));
        upper(on(), in.in(), wanted.in(), out.span()).value();
        expect([&](blob24 const& q) { return std::upper_bound(sorted.begin(), sorted.end(), q, less); });
        EXPECT_TRUE(equals("upper bound in " + std::to_string(n), expected, out.get(on())));
    }
}

TEST_F(bound_searches, by_another_order) {
    auto const lower = made(lower_bound<std::int32_t>(greater));
    device_vector<std::int32_t> const sorted{on(), std::vector<std::int32_t>{9, 7, 7, 3, 1}};
    device_vector<std::int32_t> const queries{on(), std::vector<std::int32_t>{10, 7, 5, 0}};
    device_vector<std::uint32_t> out{4};
    lower(on(), sorted.in(), queries.in(), out.span()).value();
    EXPECT_THAT(out.get(on()), testing::ElementsAre(0, 1, 3, 5));
}

namespace {
class moves : public prims_test {};
}  // namespace

TEST_F(moves, transform_and_gather) {
    auto const [widen, pick] =
        make_together([] { return transform<std::int32_t, double>(op{"a * 0.5 + s"}.with(1.0)); },
                      [] { return gather<blob24, std::uint32_t>(); });
    for (auto const n : sizes_around(widen.tile_items())) {
        auto const data = make_data<std::int32_t>(n, pattern::random, n + 1);
        device_vector<std::int32_t> const in{on(), data};
        device_vector<double> out{n};
        widen(on(), in.in(), out.span()).value();
        std::vector<double> expected(n);
        cpu::transform<std::int32_t, double>(data, std::span<double>{expected},
                                             [](std::int32_t a) { return a * 0.5 + 1.0; });
        EXPECT_TRUE(equals("transform of " + std::to_string(n), expected, out.get(on())));

        std::vector<blob24> things(n + 1);
        for (std::size_t i = 0; i < things.size(); ++i) things[i] = {i, i * i, ~i};
        std::vector<std::uint32_t> index(n);
        numbers g{n};
        for (auto& i : index) i = static_cast<std::uint32_t>(g.next() % things.size());
        device_vector<blob24> const from{on(), things};
        device_vector<std::uint32_t> const where{on(), index};
        device_vector<blob24> got{n};
        pick(on(), from.data(), where.in(), got.span()).value();
        std::vector<blob24> picked(n);
        cpu::gather<blob24, std::uint32_t>(things, index, picked);
        EXPECT_TRUE(equals("gather of " + std::to_string(n), picked, got.get(on())));
    }
}

}  // namespace kiln::device_tests
