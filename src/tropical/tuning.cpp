// SPDX-License-Identifier: Apache-2.0
#include "tropical/tuning.hpp"

namespace kiln::tropical {

namespace {

//                              bm   bn  bk  tm tn blocks unroll
constexpr tile_shape large_f32{256, 128, 32, 16, 8, 1, 2};  // 4: 0.2 % faster, and 0.4 s longer to compile
constexpr tile_shape large_i32{256, 128, 32, 16, 8, 1, 4};
constexpr tile_shape small_32{64, 64, 32, 8, 4, 4, 4};
constexpr tile_shape small_32_arg{64, 64, 32, 8, 4, 3, 4};
constexpr tile_shape small_64{64, 64, 24, 8, 4, 3, 4};  // what fits into 64 KiB
constexpr tile_shape small_64_arg{64, 32, 16, 8, 2, 4, 4};
// Of and-or and plus-times, which are there to check others with: compiled faster.
constexpr tile_shape check_32{64, 64, 32, 8, 4, 4, 1};
constexpr tile_shape check_64{64, 64, 24, 8, 4, 3, 1};

constexpr double large_rate = 1.09;

std::int64_t rounded_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }

// The time of a launch, in tiles that one multiprocessor does one after the other.
struct estimate {
    double time = 0;
    bool shares = false;
};

// Fetching and storing a tile in the middle of its steps takes as long as this many tiles of k.
constexpr double piece_cost = 0.5;

estimate estimate_of(tile_shape const& t, problem const& p, bool may_share, device_facts const& on) {
    auto const tiles = t.tiles(p), k_tiles = rounded_up(p.k, t.bk);
    estimate const alone{static_cast<double>(rounded_up(tiles, on.multiprocessors)), false};
    std::int64_t const blocks = std::int64_t{on.multiprocessors} * t.blocks;
    // The device text counts in 32 bits.
    if (!may_share || k_tiles == 0 || blocks > most_blocks_sharing || blocks * k_tiles > (std::int64_t{1} << 31))
        return alone;
    auto const rounds = tiles / blocks, left = tiles % blocks;
    if (left == 0) return alone;
    auto const share = rounded_up(left * k_tiles, blocks), pieces = rounded_up(k_tiles, share);
    double const shared = static_cast<double>(rounds * k_tiles + share) + piece_cost * static_cast<double>(pieces);
    if (t.blocks == 1) {
        double const time = shared / static_cast<double>(k_tiles);
        return time < 0.99 * alone.time ? estimate{time, true} : alone;
    }
    // Several blocks hide each other's gaps, and the last ones to start even out who is done first. Sharing pays only where
    // there are too few to fill the multiprocessors.
    bool const pays = rounds == 0 && tiles >= on.multiprocessors && k_tiles >= 16;
    return pays ? estimate{static_cast<double>(tiles) / on.multiprocessors, true} : alone;
}

bool is_split(tuning const& by, problem const& p, device_facts const& on) {
    // Too few blocks to go round, enough steps to share out, and not many more parts than fit at once.
    auto const tiles = by.small.tiles(p);
    return on.has_split && tiles < on.multiprocessors && p.k >= 128 &&
           2 * tiles * split_blocks <= std::int64_t{3} * on.multiprocessors * by.small.blocks;
}

}  // namespace

std::string tile_shape::text() const { return fmt::format("{},{},{},{},{},{},{}", bm, bn, bk, tm, tn, blocks, unroll); }

tuning const& tuning_of(semiring s, scalar type, with_winners arg) {
    static constexpr tuning with_arg[] = {{std::nullopt, small_32_arg}, {std::nullopt, small_64_arg}};
    static constexpr tuning in_order[] = {{std::nullopt, check_32}, {std::nullopt, check_64}};  // sums
    static constexpr tuning checks[] = {{std::nullopt, check_32, 1, true}, {std::nullopt, check_64, 1, true}};
    static constexpr tuning best_f32{large_f32, small_32, large_rate, true},
        best_i32{large_i32, small_32, large_rate, true}, best_64{std::nullopt, small_64, 1, true};
    bool const wide = type == scalar::f64 || type == scalar::i64;
    if (arg == with_winners::yes) return with_arg[wide];
    if (s == semiring::plus_times) return in_order[wide];
    if (s == semiring::and_or) return checks[wide];
    return wide ? best_64 : type == scalar::f32 ? best_f32 : best_i32;
}

unsigned shared_bytes(tile_shape const& t, scalar type, with_winners arg) {
    int const size = type == scalar::f32 || type == scalar::i32 ? 4 : 8;
    int const pad = 16 / size;
    int const stages = 2 * t.bk * (t.bm + t.bn + 2 * pad) * size;
    int const results = t.bm * t.bn * (size + (arg == with_winners::yes ? 4 : 0));
    return static_cast<unsigned>(std::max(stages, results));
}

launch_choice choose(tuning const& by, problem const& p, with_winners arg, device_facts const& on) {
    if (arg == with_winners::yes && p.k > most_steps_with_arg) return {};
    if (by.small.tiles(p) > most_tiles) return {};
    if (is_split(by, p, on)) return {kernel_choice::split, false};
    auto const small = estimate_of(by.small, p, by.may_share, on);
    if (on.has_large && by.large) {
        auto const large = estimate_of(*by.large, p, by.may_share, on);
        double const size = static_cast<double>(by.large->bm * by.large->bn) / (by.small.bm * by.small.bn);
        if (large.time * size / by.large_rate < small.time) return {kernel_choice::large, large.shares};
    }
    return {kernel_choice::small, small.shares};
}

launch_choice choose(tuning const& by, problem const& p, kernel_choice kernel, device_facts const& on) {
    if (by.small.tiles(p) > most_tiles) return {};
    if (kernel == kernel_choice::large && by.large) return {kernel, estimate_of(*by.large, p, by.may_share, on).shares};
    return {kernel, kernel == kernel_choice::small && estimate_of(by.small, p, by.may_share, on).shares};
}

}  // namespace kiln::tropical
