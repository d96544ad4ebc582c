// SPDX-License-Identifier: Apache-2.0
// Sizes at which counters, grids and portions overflow when they are too narrow.
#include "device/prims/prims_fixture.hpp"

namespace kiln::device_tests {

namespace {

class large : public prims_test {
protected:
    void SetUp() override {
        prims_test::SetUp();
        if (IsSkipped()) return;
        if (quick()) GTEST_SKIP() << "KILN_TEST_QUICK";
        if (info_.memory_bytes < (std::uint64_t{60} << 30)) GTEST_SKIP() << "needs 60 GiB of device memory";
    }

    template <class T>
    std::vector<T> window(T const* from, std::size_t n) const {
        device_vector<T> copy{n};
        made(gather<T, std::uint64_t>())(on(), from, index(n).in(), copy.span()).value();
        return copy.get(on());
    }
    [[nodiscard]] device_vector<std::uint64_t> index(std::size_t n) const {
        std::vector<std::uint64_t> numbers(n);
        std::iota(numbers.begin(), numbers.end(), 0U);
        return {on(), numbers};
    }
};

constexpr std::size_t two_28 = std::size_t{1} << 28;

}  // namespace

TEST_F(large, scan_and_reduce) {
    auto const [sum, total] =
        make_together([] { return exclusive_scan<std::int32_t>(plus); }, [] { return reduce<double>(plus); });
    auto const data = make_data<std::int32_t>(two_28, pattern::random, 7);
    device_vector<std::int32_t> const in{on(), data};
    device_vector<std::int32_t> out{two_28};
    sum(on(), in.in(), out.span()).value();
    std::vector<std::int32_t> expected(two_28);
    cpu::exclusive_scan<std::int32_t>(data, std::span{expected}, cpu::plus);
    EXPECT_TRUE(equals("scan of 2^28", expected, out.get(on())));

    device_vector<double> const ones{on(), std::vector<double>(two_28 + 13, 1.0)};
    device_vector<double> result{1};
    total(on(), ones.in(), result.data()).value();
    EXPECT_EQ(result.get(on()).front(), static_cast<double>(two_28 + 13));
}

TEST_F(large, scan_of_more_than_2_32_items) {
    std::size_t const n = (std::size_t{1} << 32) + 1'000'003;
    auto const sum = made(exclusive_scan<std::uint8_t>(plus));
    auto memory = device_memory::make(n).value();
    auto result = device_memory::make(n).value();
    memory.fill(on(), 1).value();
    sum(on(), {memory.as<std::uint8_t>(), n}, {result.as<std::uint8_t>(), n}).value();
    for (std::size_t const first :
         {std::size_t{0}, (std::size_t{1} << 31) - 5000, (std::size_t{1} << 32) - 5000, n - 10'000}) {
        std::vector<std::uint8_t> expected(10'000);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<std::uint8_t>(first + i);
        EXPECT_TRUE(
            equals("from " + std::to_string(first), expected, window(result.as<std::uint8_t>() + first, 10'000)));
    }
}

TEST_F(large, select_of_more_than_2_31_items) {
    std::size_t const n = (std::size_t{1} << 31) + 100'000'007;
    auto const keep = made(select_indices<std::int64_t>());
    auto mask = device_memory::make(n).value();
    mask.fill(on(), 0).value();
    std::vector<std::uint64_t> chosen{0, 5, (1ULL << 31) - 2, (1ULL << 31) - 1, 1ULL << 31, (1ULL << 31) + 1, n - 1};
    for (std::uint64_t i = 1'000'000; i < n; i += 999'983) chosen.push_back(i);
    std::sort(chosen.begin(), chosen.end());
    // Set by a transform that writes through what it captured: uploading bytes one by one would take longer.
    auto const mark = made(
        transform<std::uint64_t, std::uint64_t>(op{"(static_cast<unsigned char*>(s)[a] = 1, a)"}.with(mask.get())));
    device_vector<std::uint64_t> const places{on(), chosen};
    mark(on(), places.in(), places.span()).value();
    device_vector<std::int64_t> out{chosen.size()};
    device_vector<std::uint64_t> count{1};
    keep(on(), {mask.as<std::uint8_t>(), n}, out.data(), count.data()).value();
    ASSERT_EQ(count.get(on()).front(), chosen.size());
    EXPECT_TRUE(equals("indices", std::vector<std::int64_t>(chosen.begin(), chosen.end()), out.get(on())));
}

// `order` says where each sorted key came from. In order, and equal ones in the order they had: so none is there twice.
template <class K, class V>
void expect_stable(std::vector<K> const& keys, std::vector<K> const& sorted, std::vector<V> const& order) {
    ASSERT_EQ(sorted.size(), keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        auto const from = static_cast<std::size_t>(order[i]);
        bool const right =
            from < keys.size() && keys[from] == sorted[i] &&
            (i == 0 || sorted[i - 1] < sorted[i] || (sorted[i - 1] == sorted[i] && order[i - 1] < order[i]));
        ASSERT_TRUE(right) << "at " << i << ": key " << sorted[i] << " from " << order[i];
    }
}

TEST_F(large, radix_sort_of_more_than_one_portion) {
    std::size_t const n = two_28 + 12'345;
    auto const sort = made(radix_sort<std::uint32_t, std::uint32_t>());
    auto const keys = make_data<std::uint32_t>(n, pattern::random, 3);
    std::vector<std::uint32_t> values(n);
    std::iota(values.begin(), values.end(), 0U);
    device_vector<std::uint32_t> const keys_in{on(), keys};
    device_vector<std::uint32_t> const values_in{on(), values};
    device_vector<std::uint32_t> keys_out{n};
    device_vector<std::uint32_t> values_out{n};
    sort(on(), {.keys_in = keys_in.in(),
                .keys_out = keys_out.data(),
                .values_in = values_in.data(),
                .values_out = values_out.data()})
        .value();
    auto const sorted = keys_out.get(on());
    auto const order = values_out.get(on());
    expect_stable(keys, sorted, order);
}

TEST_F(large, merge_sort) {
    std::size_t const n = two_28 + 77;
    auto const sort = made(merge_sort<std::uint64_t, std::int32_t>());
    auto const keys = make_data<std::uint64_t>(n, pattern::random, 3);
    std::vector<std::int32_t> values(n);
    std::iota(values.begin(), values.end(), 0);
    device_vector<std::uint64_t> const keys_in{on(), keys};
    device_vector<std::int32_t> const values_in{on(), values};
    device_vector<std::uint64_t> keys_out{n};
    device_vector<std::int32_t> values_out{n};
    sort(on(), {.keys_in = keys_in.in(),
                .keys_out = keys_out.data(),
                .values_in = values_in.data(),
                .values_out = values_out.data()})
        .value();
    auto const sorted = keys_out.get(on());
    auto const order = values_out.get(on());
    expect_stable(keys, sorted, order);
}

TEST_F(large, unique_by_key) {
    std::size_t const n = two_28 + 13;
    auto const unique = made(unique_by_key<std::int32_t, std::int32_t>());
    std::vector<std::int32_t> keys(n);
    std::vector<std::int32_t> values(n);
    for (std::size_t i = 0; i < n; ++i) {
        keys[i] = static_cast<std::int32_t>(i / 5);
        values[i] = static_cast<std::int32_t>(i);
    }
    device_vector<std::int32_t> const keys_in{on(), keys};
    device_vector<std::int32_t> const values_in{on(), values};
    device_vector<std::int32_t> keys_out{n};
    device_vector<std::int32_t> values_out{n};
    device_vector<std::uint64_t> count{1};
    unique(on(),
           {.keys_in = keys_in.in(),
            .keys_out = keys_out.data(),
            .values_in = values_in.data(),
            .values_out = values_out.data()},
           count.data())
        .value();
    auto const kept = (n + 4) / 5;
    ASSERT_EQ(count.get(on()).front(), kept);
    std::vector<std::int32_t> expected(kept);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_TRUE(equals("keys", expected, keys_out.get(on(), kept)));
    for (auto& x : expected) x *= 5;
    EXPECT_TRUE(equals("values", expected, values_out.get(on(), kept)));
}

// Among even numbers, so that the answer is known without a search.
TEST_F(large, bounds) {
    auto const [lower, upper] =
        make_together([] { return lower_bound<std::int32_t>(); }, [] { return upper_bound<std::int32_t>(); });
    std::size_t const n = two_28 + 13;
    std::vector<std::int32_t> sorted(n);
    std::vector<std::int32_t> queries(n);
    for (std::size_t i = 0; i < n; ++i) {
        sorted[i] = static_cast<std::int32_t>(2 * i);
        queries[i] = static_cast<std::int32_t>(i * 2'654'435'761U % (2 * n + 100));
    }
    device_vector<std::int32_t> const in{on(), sorted};
    device_vector<std::int32_t> const wanted{on(), queries};
    device_vector<std::uint32_t> out{n};
    std::vector<std::uint32_t> expected(n);
    auto const before = [&](std::int32_t q, std::int32_t more) {
        return static_cast<std::uint32_t>(
            std::min((static_cast<std::size_t>(q) + static_cast<std::size_t>(more)) / 2, n));
    };
    lower(on(), in.in(), wanted.in(), out.span()).value();
    std::ranges::transform(queries, expected.begin(), [&](std::int32_t q) { return before(q, 1); });
    EXPECT_TRUE(equals("lower", expected, out.get(on())));
    upper(on(), in.in(), wanted.in(), out.span()).value();
    std::ranges::transform(queries, expected.begin(), [&](std::int32_t q) { return before(q, 2); });
    EXPECT_TRUE(equals("upper", expected, out.get(on())));
}

TEST_F(large, transform_and_gather) {
    auto const [twice, pick] = make_together([] { return transform<std::int32_t, std::int32_t>(op{"2 * a + 1"}); },
                                             [] { return gather<std::int32_t, std::uint32_t>(); });
    std::size_t const n = two_28 + 13;
    std::vector<std::int32_t> data(n);
    std::vector<std::uint32_t> index(n);
    std::vector<std::int32_t> expected(n);
    for (std::size_t i = 0; i < n; ++i) {
        data[i] = static_cast<std::int32_t>(i);
        index[i] = static_cast<std::uint32_t>(n - 1 - i);
        expected[i] = 2 * data[i] + 1;
    }
    device_vector<std::int32_t> const in{on(), data};
    device_vector<std::uint32_t> const where{on(), index};
    device_vector<std::int32_t> doubled{n};
    device_vector<std::int32_t> picked{n};
    twice(on(), in.in(), doubled.span()).value();
    EXPECT_TRUE(equals("transform", expected, doubled.get(on())));
    pick(on(), doubled.data(), where.in(), picked.span()).value();
    std::ranges::reverse(expected);
    EXPECT_TRUE(equals("gather", expected, picked.get(on())));
}

// By lanes, by blocks, and by very few blocks.
TEST_F(large, segmented_reduce) {
    auto const sum = made(segmented_reduce<double>(plus));
    std::size_t const n = two_28 + 13;
    device_vector<double> const ones{on(), std::vector<double>(n, 1.0)};
    for (std::size_t const length : {std::size_t{20}, std::size_t{1000}, std::size_t{5000}, n / 3}) {
        std::vector<std::uint32_t> offsets;
        for (std::size_t at = 0; at < n; at += length) offsets.push_back(static_cast<std::uint32_t>(at));
        offsets.push_back(static_cast<std::uint32_t>(n));
        std::vector<double> expected(offsets.size() - 1);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = offsets[i + 1] - offsets[i];
        device_vector<std::uint32_t> const where{on(), offsets};
        device_vector<double> out{expected.size()};
        sum(on(), ones.in(), where.span(), out.span()).value();
        EXPECT_TRUE(equals("segments of " + std::to_string(length), expected, out.get(on())));
    }
}

}  // namespace kiln::device_tests
