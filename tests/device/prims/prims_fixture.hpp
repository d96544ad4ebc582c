// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the primitives: data, sizes, device vectors, and comparisons that say where and what.
#pragma once

#include "device/device_fixture.hpp"

#include <kiln/prims/cpu.hpp>
#include <kiln/prims/handles.hpp>

#include <cstdlib>
#include <future>
#include <limits>
#include <sstream>

namespace kiln::device_tests {

// KILN_TEST_QUICK=1: sizes that memcheck can go through in minutes.
inline bool quick() {
    char const* const text = std::getenv("KILN_TEST_QUICK");
    return text != nullptr && (*text == '1' || *text == '2');
}
// KILN_TEST_QUICK=2: every kernel a few times, for racecheck, which takes about a second for a launch.
inline bool quickest() { return quick() && *std::getenv("KILN_TEST_QUICK") == '2'; }

template <class T>
class device_vector {
public:
    explicit device_vector(std::size_t n)
        : size_{n}, memory_{device_memory::make(std::max<std::size_t>(n, 1) * sizeof(T)).value()} {}
    device_vector(stream const& on, std::vector<T> const& from) : device_vector{from.size()} {
        if (!from.empty()) memory_.upload_sync(on, from).value();
    }
    [[nodiscard]] T* data() const { return memory_.as<T>(); }
    [[nodiscard]] device_span<T> span() const { return {data(), size_}; }
    [[nodiscard]] device_span<T const> in() const { return {data(), size_}; }
    [[nodiscard]] std::vector<T> get(stream const& on) const { return get(on, size_); }
    [[nodiscard]] std::vector<T> get(stream const& on, std::size_t n) const {
        std::vector<T> out(n);
        if (n > 0) memory_.download_sync(on, out).value();
        return out;
    }
    void poison(stream const& on) { memory_.fill(on, 0xa5).value(); }

private:
    std::size_t size_;
    device_memory memory_;
};

// A small generator: the tests make hundreds of millions of numbers.
class numbers {
public:
    explicit numbers(std::uint64_t seed) : state_{seed * 2654435761U + 88172645463325252U} {}
    std::uint64_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_;
    }

private:
    std::uint64_t state_;
};

enum class pattern { random, all_equal, sorted, reversed, special };
inline constexpr pattern all_patterns[] = {pattern::random, pattern::all_equal, pattern::sorted, pattern::reversed,
                                           pattern::special};
inline char const* name_of(pattern p) {
    constexpr char const* names[] = {"random", "all equal", "sorted", "reversed", "special"};
    return names[static_cast<int>(p)];
}

template <class T>
T any_value(std::uint64_t bits) {
    T out{};
    std::memcpy(&out, &bits, std::min(sizeof(T), sizeof(bits)));
    return out;
}

// NaN, infinities, both zeros; for integers the ends of the range.
template <class T>
T special_value(std::uint64_t choice) {
    if constexpr (std::is_integral_v<T>) {
        constexpr T values[] = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), 0, 1, static_cast<T>(-1)};
        return values[choice % 5];
    } else {
        constexpr float inf = std::numeric_limits<float>::infinity();
        float const values[] = {std::nanf(""), inf, -inf, 0.0F, -0.0F, 1.0F, -1.0F};
        return cpu::from_number<T>(values[choice % 7]);
    }
}

template <class T>
std::vector<T> make_data(std::size_t n, pattern p, std::uint64_t seed) {
    std::vector<T> out(n);
    numbers g{seed};
    for (std::size_t i = 0; i < n; ++i) {
        // Floats of all bit patterns would be half NaNs of one sort: small numbers with repeats, and specials apart.
        if constexpr (std::is_integral_v<T>) out[i] = any_value<T>(g.next());
        else out[i] = cpu::from_number<T>(static_cast<float>(static_cast<std::int64_t>(g.next() % 2001) - 1000) / 8.0F);
        if (p == pattern::all_equal) out[i] = out[0];
        if (p == pattern::special) out[i] = special_value<T>(g.next());
    }
    auto const by = cpu::radix_less<T>(cpu::sort_direction::ascending);
    if (p == pattern::sorted || p == pattern::reversed) std::sort(out.begin(), out.end(), by);
    if (p == pattern::reversed) std::reverse(out.begin(), out.end());
    return out;
}

// Any contiguous sum stays within +-100: exact in every floating-point type, in whatever order it is added up.
template <class T>
std::vector<T> walk_data(std::size_t n, std::uint64_t seed) {
    std::vector<T> out(n);
    numbers g{seed};
    int at = 50;
    for (auto& value : out) {
        int step = static_cast<int>(g.next() % 5) - 2;
        if (at + step < 0 || at + step > 100) step = -step;
        at += step;
        value = cpu::from_number<T>(static_cast<float>(step));
    }
    return out;
}

// Few ones among zeros: any sum of any subset is exact.
template <class T>
std::vector<T> sparse_data(std::size_t n, std::uint64_t seed) {
    std::vector<T> out(n, cpu::from_number<T>(0.0F));
    numbers g{seed};
    for (int i = 0; i < 200 && n > 0; ++i) out[g.next() % n] = cpu::from_number<T>(i % 2 == 0 ? 1.0F : -1.0F);
    return out;
}

inline std::vector<std::size_t> sizes_around(std::size_t tile) {
    if (quickest()) return {33, tile + 1};
    std::vector<std::size_t> out{0, 1, 2, 31, 33, tile - 1, tile, tile + 1, 3 * tile + 7};
    if (!quick()) out.insert(out.end(), {2 * tile, 129 * tile - 1, (std::size_t{1} << 20) + 3});
    return out;
}

template <class T>
std::string shown(T const& value) {
    std::ostringstream out;
    if constexpr (requires { out << cpu::number_of(value); }) out << +cpu::number_of(value);
    std::uint64_t bits[4] = {};
    std::memcpy(bits, &value, std::min(sizeof(T), sizeof(bits)));
    out << " (0x" << std::hex << bits[0] << ")";
    return out.str();
}

// Bit for bit; any NaN equals any other.
template <class T>
bool same(T const& a, T const& b) {
    if constexpr (requires { cpu::number_of(a) != cpu::number_of(a); }) {
        if (cpu::number_of(a) != cpu::number_of(a) && cpu::number_of(b) != cpu::number_of(b)) return true;
    }
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
testing::AssertionResult equals(std::string const& what, std::vector<T> const& expected, std::vector<T> const& got) {
    if (expected.size() != got.size()) {
        return testing::AssertionFailure() << what << ": " << got.size() << " items instead of " << expected.size();
    }
    std::size_t wrong = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (same(expected[i], got[i])) continue;
        if (wrong++ == 0) first = i;
    }
    if (wrong == 0) return testing::AssertionSuccess();
    return testing::AssertionFailure() << what << ": n = " << got.size() << ", " << wrong << " wrong, the first at "
                                       << first << ": expected " << shown(expected[first]) << ", got "
                                       << shown(got[first]);
}

class prims_test : public on_device {
protected:
    void SetUp() override {
        on_device::SetUp();
        if (!IsSkipped()) stream_.emplace(stream::make().value());
    }
    void TearDown() override {
        stream_.reset();
        if (!IsSkipped()) trim_scratch_sync().value();
    }
    [[nodiscard]] stream const& on() const { return *stream_; }
    [[nodiscard]] std::string at(std::string const& name, std::size_t n, pattern p) const {
        return name + " of " + std::to_string(n) + ", " + device_tests::name_of(p);
    }

private:
    std::optional<stream> stream_;
};

// A failure to make a handle, with the compiler's words.
template <class T>
T made(result<T> r) {
    if (!r) {
        ADD_FAILURE() << r.error().what() << "\n" << r.error().log();
        throw std::move(r).error();
    }
    return *std::move(r);
}

// Makes handles at the same time: most of it is waiting for compilers.
template <class... Make>
auto make_together(Make... make) {
    auto pending = std::make_tuple(std::async(std::launch::async, make)...);
    return std::apply([](auto&... each) { return std::make_tuple(made(each.get())...); }, pending);
}

}  // namespace kiln::device_tests
