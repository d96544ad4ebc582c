// SPDX-License-Identifier: Apache-2.0
#include "tropical/tuning.hpp"

namespace kiln::tropical {

namespace {

//                                        bm   bn  bk  tm tn blocks unroll
constexpr tile_shape large_32{256, 128, 32, 16, 8, 1, 4};
constexpr tile_shape small_32{64, 64, 16, 8, 4, 4, 4};
constexpr tile_shape large_32_arg{64, 64, 32, 8, 4, 3, 4};
constexpr tile_shape small_32_arg{64, 64, 16, 8, 4, 3, 4};
constexpr tile_shape small_64{64, 64, 16, 8, 4, 3, 4};
constexpr tile_shape small_64_arg{64, 32, 16, 8, 2, 4, 4};

// The rate of i32's large tile is an estimate: 30.8 Top/s over what its small one had with other sums.
constexpr tuning tunings[2][4] = {
    {{large_32, small_32, 1.27}, {std::nullopt, small_64}, {large_32, small_32, 1.3}, {std::nullopt, small_64}},
    {{large_32_arg, small_32_arg, 1.03},
     {std::nullopt, small_64_arg},
     {large_32_arg, small_32_arg, 1.03},
     {std::nullopt, small_64_arg}}};

std::size_t index_of(scalar type) {
    switch (type) {
        case scalar::f32: return 0;
        case scalar::f64: return 1;
        case scalar::i32: return 2;
        default: return 3;
    }
}

std::int64_t rounds(std::int64_t tiles, int at_once) { return (tiles + at_once - 1) / at_once; }

}  // namespace

std::string tile_shape::text() const { return fmt::format("{},{},{},{},{},{},{}", bm, bn, bk, tm, tn, blocks, unroll); }

tuning const& tuning_of(scalar type, with_winners arg) {
    return tunings[arg == with_winners::yes ? 1 : 0][index_of(type)];
}

unsigned shared_bytes(tile_shape const& t, scalar type, with_winners arg) {
    int const size = type == scalar::f32 || type == scalar::i32 ? 4 : 8;
    int const pad = 16 / size;
    int const stages = 2 * t.bk * (t.bm + t.bn + 2 * pad) * size + t.bk * (t.bm + t.bn) * size;
    int const results = t.bm * t.bn * (size + (arg == with_winners::yes ? 4 : 0));
    return static_cast<unsigned>(std::max(stages, results));
}

kernel_choice choose(tuning const& by, problem const& p, with_winners arg, device_facts const& on) {
    if (arg == with_winners::yes && p.k > most_steps_with_arg) return kernel_choice::generic;
    auto const small_tiles = by.small.tiles(p);
    // Too few blocks to go round, and enough steps to share out.
    if (on.has_split && small_tiles < on.multiprocessors && p.k >= 128) return kernel_choice::split;
    if (!on.has_large || !by.large) return kernel_choice::small;
    auto const time = [&](tile_shape const& t, double rate) {
        return static_cast<double>(rounds(t.tiles(p), on.multiprocessors)) * t.bm * t.bn / rate;
    };
    return time(*by.large, by.large_rate) < time(by.small, 1) ? kernel_choice::large : kernel_choice::small;
}

}  // namespace kiln::tropical
