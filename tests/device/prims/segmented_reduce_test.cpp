// SPDX-License-Identifier: Apache-2.0
#include "device/prims/prims_fixture.hpp"

#include <cstring>

namespace kiln {
// As wide as the widest load, and not as aligned.
struct total_of {
    double sum;
    std::int32_t count, most;
    bool operator==(total_of const&) const = default;
};
template <>
struct device_type<total_of> {
    static constexpr std::string_view name = "total_of",
                                      definition = "struct total_of { double sum; int count, most; };";
};
}  // namespace kiln

namespace kiln::device_tests {

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
TEST_F(segments, of_structs_that_begin_anywhere) {
    auto const sum = made(segmented_reduce<total_of>(
        op{"total_of{a.sum + b.sum, a.count + b.count, a.most > b.most ? a.most : b.most}"}));
    auto const on_host = [](total_of a, total_of b) {
        return total_of{a.sum + b.sum, a.count + b.count, std::max(a.most, b.most)};
    };
    std::size_t const n = quick() ? 10'000 : 200'000;
    numbers g{7};
    std::vector<total_of> data(n);
    for (auto& one : data) one = {static_cast<double>(g.next() % 100), 1, static_cast<std::int32_t>(g.next() % 1000)};
    for (std::size_t const words_before : {0, 1}) {
        std::vector<std::uint64_t> words(2 * n + words_before);
        std::memcpy(words.data() + words_before, data.data(), n * sizeof(total_of));
        device_vector<std::uint64_t> const memory{on(), words};
        auto const* const in = reinterpret_cast<total_of const*>(memory.data() + words_before);
        for (std::size_t const length : {3, 100, 600, 1024, 5000}) {
            auto const offsets = offsets_by<std::uint32_t>(n, [&](std::size_t i) { return length + i % 2; });
            device_vector<std::uint32_t> const where{on(), offsets};
            device_vector<total_of> out{offsets.size() - 1};
            out.poison(on());
            sum(on(), {in, n}, where.span(), out.span(), {.init = {1, 2, 3}}).value();
            std::vector<total_of> expected(offsets.size() - 1);
            cpu::segmented_reduce<total_of, std::uint32_t>(data, offsets, std::span<total_of>{expected}, on_host,
                                                           {1, 2, 3});
            EXPECT_EQ(expected, out.get(on())) << "segments of " << length << ", " << words_before << " words on";
        }
    }
}
TEST_F(segments, without_any) {
    auto const sum = made(segmented_reduce<double>(plus));
    device_vector<double> const none{0};
    device_vector<std::uint32_t> const offset{on(), std::vector<std::uint32_t>{0}};
    EXPECT_TRUE(sum(on(), none.in(), offset.span(), none.span()));
}

}  // namespace kiln::device_tests
