// SPDX-License-Identifier: Apache-2.0
#include "device/prims/vec3.hpp"

namespace kiln::device_tests {

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

}  // namespace kiln::device_tests
