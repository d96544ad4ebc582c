// SPDX-License-Identifier: Apache-2.0
// Signs, kinds of contact and crossing points as a device computes them, against arithmetic that shares nothing with the pack.
// KILN_SPATIAL_TRIPLES=10000000 for so many of each kind.
#include "spatial_fixture.hpp"

#include "spatial/units.hpp"
#include "unit/spatial/superaccumulator.hpp"
#include "unit/spatial/triples.hpp"

#include <kiln/engine.hpp>

#include <atomic>
#include <thread>

namespace kiln::device_tests {

namespace {

using spatial_tests::draw;
using spatial_tests::pair_of_segments;
using spatial_tests::triple;

unit asking() {
    unit out;
    out.name = "spatial_test_exact";
    out.source =
        "#include \"exact.cuh\"\n"
        "using namespace kiln_spatial;\n"
        "struct triple { point a, b, c; };\n"
        "struct segments { point a, b, c, d; };\n"
        "extern \"C\" __global__ void signs(triple const* of, int* to, u64 n) {\n"
        "    u64 const i = u64(blockIdx.x) * blockDim.x + threadIdx.x;\n"
        "    if (i >= n) return;\n"
        "    guess const g = orient_filter(of[i].a, of[i].b, of[i].c);\n"
        "    to[i] = (orient(of[i].a, of[i].b, of[i].c) & 3) | (g.certain ? 4 | (g.side & 3) << 3 : 0);\n"
        "}\n"
        "extern \"C\" __global__ void contacts(segments const* of, int* to, point* at, u64 n) {\n"
        "    u64 const i = u64(blockIdx.x) * blockDim.x + threadIdx.x;\n"
        "    if (i >= n) return;\n"
        "    segments const s = of[i];\n"
        "    to[i] = contact_of(s.a, s.b, s.c, s.d);\n"
        "    if (to[i] == crossing) at[i] = crossing_point(s.a, s.b, s.c, s.d);\n"
        "}\n";
    out.headers = all_units().front().headers;
    out.kernels = {"signs", "contacts"};
    out.options = {"-std=c++17"};
    return out;
}

std::size_t triples() {
    char const* const text = std::getenv("KILN_SPATIAL_TRIPLES");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : quick() ? 2000 : 200'000;
}

// turn(i) for all of them, by as many threads as there are.
template <class Turn>
void in_parallel(std::size_t n, Turn turn) {
    auto const workers = std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::jthread> all;
    for (unsigned w = 0; w < workers; ++w)
        all.emplace_back([=] {
            for (std::size_t i = n * w / workers; i < n * (w + 1) / workers; ++i) turn(i);
        });
}

constexpr std::size_t at_once = 1 << 20;

class spatial_exact : public on_spatial_device {
protected:
    template <class T>
    buffer<T> moved(std::vector<T> const& what) {
        return buffer<T>::copy_of(what).to_device(on()).value();
    }
    template <class... Arguments>
    void launch(char const* kernel, std::size_t n, Arguments... arguments) {
        auto const ready = take(engine::process().get_sync(asking()));
        std::uint64_t count = n;
        void* all[] = {&arguments..., &count};
        take(ready.kernel(kernel)).launch(on(), {{static_cast<unsigned>((n + 127) / 128)}, {128}}, all).value();
    }
};

}  // namespace

TEST_F(spatial_exact, signs_are_those_of_exact_arithmetic) {
    unsigned seed = 0;
    for (auto const& kind : spatial_tests::kinds()) {
        draw d{++seed};
        std::atomic<std::size_t> wrong{0}, wrong_filter{0}, undecided{0};
        std::size_t const all = triples();
        for (std::size_t first = 0; first < all; first += at_once) {
            std::vector<triple> of(std::min(at_once, all - first));
            for (std::size_t i = 0; i < of.size(); ++i) of[i] = kind.make(d, static_cast<int>((first + i) % 65'536));
            auto const there = moved(of);
            auto const got = buffer<int>::on_device(on(), of.size()).value();
            launch("signs", of.size(), there.data(), got.data());
            auto const signs = values_of(got);
            in_parallel(of.size(), [&](std::size_t i) {
                int const truth = spatial_tests::true_side(of[i].a, of[i].b, of[i].c) & 3;
                wrong += (signs[i] & 3) != truth ? 1U : 0U;
                if ((signs[i] & 4) == 0) ++undecided;
                else wrong_filter += (signs[i] >> 3 & 3) != truth ? 1U : 0U;
            });
        }
        EXPECT_EQ(wrong, 0U) << kind.name << ", of " << all;
        EXPECT_EQ(wrong_filter, 0U) << kind.name;
        RecordProperty(std::string{kind.name} + "_undecided", std::to_string(undecided));
    }
}

TEST_F(spatial_exact, contacts_and_crossings_are_those_of_exact_arithmetic) {
    for (int kind = 0; kind < 5; ++kind) {
        draw r{static_cast<unsigned>(177 + kind)};
        std::atomic<std::size_t> wrong{0}, wrong_points{0}, crossed{0};
        std::size_t const all = triples();
        for (std::size_t first = 0; first < all; first += at_once) {
            std::vector<pair_of_segments> of(std::min(at_once, all - first));
            for (auto& one : of) one = spatial_tests::make_pair(r, kind);
            auto const there = moved(of);
            auto const how = buffer<int>::on_device(on(), of.size()).value();
            auto const at = buffer<kiln_spatial::point>::on_device(on(), of.size()).value();
            launch("contacts", of.size(), there.data(), how.data(), at.data());
            auto const kinds = values_of(how);
            auto const points = values_of(at);
            in_parallel(of.size(), [&](std::size_t i) {
                auto const& [a, b, c, d] = of[i];
                wrong += kinds[i] != spatial_tests::true_contact(a, b, c, d) ? 1U : 0U;
                if (kinds[i] != kiln_spatial::crossing) return;
                ++crossed;
                // The host's, which the unit tests compare with rational arithmetic: bit for bit.
                auto const p = kiln_spatial::crossing_point(a, b, c, d);
                wrong_points += points[i].x != p.x || points[i].y != p.y ? 1U : 0U;
            });
        }
        EXPECT_EQ(wrong, 0U) << "kind " << kind << ", of " << all;
        EXPECT_EQ(wrong_points, 0U) << "kind " << kind << ", of " << crossed;
    }
}

}  // namespace kiln::device_tests
