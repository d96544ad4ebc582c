// SPDX-License-Identifier: Apache-2.0
#include "prims/specialisation.hpp"

#include <bit>
#include <utility>

namespace kiln::prims {

namespace {

struct merge_sort_kernel {
    enum { sort_tiles, partition, merge };
};
constexpr int partition_threads = 256;

struct layout {
    int passes = 0;
    std::size_t partitions = 0, keys = 0, values = 0, total = 0;
};

// Where the items are between two passes.
struct side {
    void* keys;
    void* values;
};

layout layout_for(specialisation const& s, std::size_t n) {
    auto const tiles = s.tiles(n);
    if (tiles <= 1) return {};
    layout out;
    out.passes = static_cast<int>(std::bit_width(tiles - 1));
    out.keys = aligned_256((tiles + 1) * static_cast<std::size_t>(s.info.more[0]));
    out.values = out.keys + aligned_256(n * s.value_bytes);
    out.total = out.values + aligned_256(n * s.mapped_bytes);
    return out;
}

}  // namespace

result<merge_sort> merge_sort::make(element_type key, element_type value, op const& by, prim_options const& how) {
    KILN_TRY(auto what, specialisation::make(merge_sort_request(std::move(key), std::move(value), by, how.items), how));
    return merge_sort{std::move(what), &by};
}

std::size_t merge_sort::scratch_bytes(std::size_t n) const noexcept { return layout_for(*what_, n).total; }

result<void> merge_sort::run(stream_ref on, sort_call const& call) const {
    auto const& s = *what_;
    if (s.info.more[0] == 4 && call.n > 0xffffffffU) return too_many(s, call.n);
    if (call.n == 0) return {};
    auto const tiles = s.tiles(call.n);
    if (tiles >= most_blocks) return too_many(s, call.n);
    auto const shape = layout_for(s, call.n);
    KILN_TRY(auto const scope, call_scope::enter(s));
    KILN_TRY(auto const lease, s.scratch->acquire(on, shape.total, call.scratch));
    // Offsets are 32 or 64 bits wide: a little-endian machine may pass either from the same place.
    std::uint64_t const n = call.n;
    std::uint64_t const partition_count = tiles + 1;
    int const tile = static_cast<int>(s.info.tile());
    void* const partitions = lease.get();

    // Every pass changes sides, and the last one must end in the output. The first kernel waits for whatever the caller has
    // in the stream; the others begin while the one before ends, and wait themselves.
    side now{call.keys_out, call.values_out};
    side next{lease.get() + shape.keys, lease.get() + shape.values};
    if (shape.passes % 2 != 0) std::swap(now, next);
    KILN_CHECK(launch(s.kernels[merge_sort_kernel::sort_tiles], on, tiles, s.info.threads,
                      {call.keys_in, call.values_in, now.keys, now.values, n, state_}));
    for (int pass = 0; pass < shape.passes; ++pass, std::swap(now, next)) {
        std::uint64_t const merged_tiles = std::uint64_t{2} << pass;
        KILN_CHECK(launch(s.kernels[merge_sort_kernel::partition], on, ceil_div(partition_count, partition_threads),
                          partition_threads, {now.keys, n, partition_count, partitions, merged_tiles, tile, state_},
                          launch_start::early));
        KILN_CHECK(launch(s.kernels[merge_sort_kernel::merge], on, tiles, s.info.threads,
                          {now.keys, now.values, next.keys, next.values, n, partitions, merged_tiles, state_},
                          launch_start::early));
    }
    return {};
}

}  // namespace kiln::prims
