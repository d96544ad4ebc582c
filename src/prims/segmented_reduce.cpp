// SPDX-License-Identifier: Apache-2.0
#include "prims/specialisation.hpp"

namespace kiln::prims {

namespace {

struct segmented_reduce_kernel {
    enum index { block_each, lanes_8, lanes_32 };
};

// Mean lengths up to which a few lanes per segment are faster than a block.
constexpr std::size_t mean_for_8 = 24;
constexpr std::size_t mean_for_32 = 1024;
// Of items so large that a warp has too few on their way, a block has segments that fill it.
constexpr std::size_t bytes_for_32 = 8192;
constexpr std::size_t mean_for_block = 256;
constexpr std::size_t queue_blocks_per_multiprocessor = 4;
// A block for each of so few segments runs at once, in one launch; lanes need three.
constexpr std::size_t least_for_block = 64;
constexpr std::size_t block_rounds = 2;
// In so little data no segment is long enough to be worth a queue.
constexpr std::size_t least_for_queue = 16384;

// As in the device text.
struct segments {
    void const* begins;
    void const* ends;
    std::uint64_t count;
    std::int32_t wide;
    std::int32_t unused;
};
struct queue {
    std::uint64_t* entries;
    std::uint64_t capacity;
};
static_assert(sizeof(segments) == 32 && sizeof(queue) == 16);

struct plan {
    segmented_reduce_kernel::index kernel;
    std::size_t per_block;     // segments
    std::size_t long_segment;  // longer ones are queued; 0: no queue
    std::size_t capacity;      // of the queue
};

// Where the device text puts its constants.
int block_threads(prim_info const& info) { return info.more[2]; }
int lanes_threads(prim_info const& info) { return info.more[4]; }
std::size_t long_for_8(prim_info const& info) { return static_cast<std::size_t>(info.more[5]); }
std::size_t long_for_32(prim_info const& info) { return static_cast<std::size_t>(info.more[6]); }

plan plan_for(specialisation const& s, std::size_t n, std::size_t count) {
    auto const& info = s.info;
    auto const mean = count > 0 ? n / count : 0;
    auto const threads = static_cast<std::size_t>(lanes_threads(info));
    bool const few_segments = mean >= least_for_block && count <= s.resident_blocks * block_rounds;
    bool const long_ones = mean > mean_for_32 || (mean >= mean_for_block && mean * s.value_bytes > bytes_for_32);
    if (long_ones || few_segments) return {segmented_reduce_kernel::block_each, 1, 0, 0};
    bool const few = mean <= mean_for_8;
    auto const limit = few ? long_for_8(info) : long_for_32(info);
    return {few ? segmented_reduce_kernel::lanes_8 : segmented_reduce_kernel::lanes_32, threads / (few ? 8 : 32), limit,
            n < least_for_queue ? 0 : n / limit};
}

}  // namespace

result<segmented_reduce> segmented_reduce::make(element_type type, op const& by, prim_options const& how) {
    KILN_TRY(auto what, specialisation::make(segmented_reduce_request(std::move(type), by), how));
    return segmented_reduce{std::move(what), &by};
}

std::size_t segmented_reduce::scratch_bytes(std::size_t n, std::size_t segments) const noexcept {
    auto const capacity = plan_for(*what_, n, segments).capacity;
    return capacity == 0 ? 0 : aligned_256((1 + capacity) * sizeof(std::uint64_t));
}

result<void> segmented_reduce::run(stream_ref on, void const* in, std::size_t n, segment_offsets const& where,
                                   void* out, void const* init, scratch_span scratch) const {
    if (where.count == 0) return {};
    auto const& s = *what_;
    auto const p = plan_for(s, n, where.count);
    KILN_TRY(auto const scope, call_scope::enter(s));
    KILN_TRY(auto const lease, s.scratch->acquire(on, scratch_bytes(n, where.count), scratch));
    segments const all{where.begins, where.ends, where.count, where.width == 8 ? 1 : 0, 0};
    queue const waiting{reinterpret_cast<std::uint64_t*>(lease.get()), p.capacity};
    argument::bytes_at const start{init};
    if (p.capacity > 0) KILN_CHECK(set_zero(s, on, waiting.entries, sizeof(std::uint64_t)));

    auto const per_launch = most_blocks * p.per_block;
    for (std::size_t done = 0; done < where.count; done += std::min(per_launch, where.count - done)) {
        std::uint64_t const first = done;
        auto const blocks = ceil_div(std::min(per_launch, where.count - done), p.per_block);
        auto const threads =
            p.kernel == segmented_reduce_kernel::block_each ? block_threads(s.info) : lanes_threads(s.info);
        KILN_CHECK(launch(s.kernels[p.kernel], on, blocks, threads, {in, out, all, first, waiting, start, state_}));
    }
    if (p.capacity == 0) return {};
    auto const multiprocessors = static_cast<std::size_t>(std::max(1, s.context->info().multiprocessors));
    auto const blocks = std::min(p.capacity, multiprocessors * queue_blocks_per_multiprocessor);
    return launch(s.kernels[segmented_reduce_kernel::block_each], on, blocks, block_threads(s.info),
                  {in, out, all, std::uint64_t{0}, waiting, start, state_}, launch_start::early);
}

}  // namespace kiln::prims
