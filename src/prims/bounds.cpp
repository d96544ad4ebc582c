// SPDX-License-Identifier: Apache-2.0
#include "prims/specialisation.hpp"

namespace kiln::prims {

namespace {

struct bounds_kernel {
    enum { few_queries, many_queries, make_sample };
};

// From here on pivots in shared memory, read once per block, are worth it.
constexpr std::size_t least_queries = std::size_t{1} << 19;
constexpr std::size_t least_sorted = std::size_t{1} << 14;
constexpr std::size_t blocks_per_multiprocessor = 4;
// Pivots of more than eight bytes lie in few banks: blocks with few queries read fewer of them, and fewer blocks read them.
constexpr std::size_t few_queries_of_wide = std::size_t{1} << 22;
constexpr int few_pivots = 512;
constexpr std::size_t few_blocks_per_multiprocessor = 2;

// A range that the cache does not hold is searched through a sample that it does.
constexpr std::size_t cached_bytes = std::size_t{32} << 20;
constexpr std::size_t sample_bytes = std::size_t{24} << 20;
constexpr int least_shift = 4;
// Sampling reads a sector in 2^shift items: worth it unless the queries are very few beside the range.
constexpr std::size_t sorted_per_query = 32;

// As in the device text.
struct sampled {
    void const* sorted;
    std::uint64_t n;
    void const* sample;
    std::uint64_t size;
    std::int32_t shift;
    std::int32_t pivots;
};
static_assert(sizeof(sampled) == 40);

int many_threads(prim_info const& info) { return info.more[0]; }
int most_pivots(prim_info const& info) { return info.more[1]; }

int shift_for(specialisation const& s, bounds_call const& call) {
    if (call.n * s.value_bytes <= cached_bytes || call.n / sorted_per_query > call.count) return 0;
    int shift = least_shift;
    while ((call.n >> shift) * s.value_bytes > sample_bytes) ++shift;
    return shift;
}

result<void> run_few(specialisation const& s, stream_ref on, bounds_call const& call, op::state_bytes const& state) {
    std::uint64_t const n = call.n;
    int const wide = call.index_width == 8 ? 1 : 0;
    auto const per_launch = most_blocks * s.info.tile();
    for (std::size_t done = 0; done < call.count;) {
        std::uint64_t const count = std::min(per_launch, call.count - done);
        void const* const queries = static_cast<std::byte const*>(call.queries) + done * s.value_bytes;
        void* const out = static_cast<std::byte*>(call.out) + done * call.index_width;
        KILN_CHECK(launch(s.kernels[bounds_kernel::few_queries], on, s.tiles(count), s.info.threads,
                          {call.sorted, n, queries, count, out, wide, state}));
        done += count;
    }
    return {};
}

result<void> run_many(specialisation const& s, stream_ref on, bounds_call const& call, op::state_bytes const& state) {
    bool const few = s.value_bytes > 8 && call.count < few_queries_of_wide;
    auto const pivots = few ? std::min(few_pivots, most_pivots(s.info)) : most_pivots(s.info);
    sampled in{call.sorted, call.n, call.sorted, call.n, 0, pivots};
    scratch_pool::lease held;
    if (int const shift = shift_for(s, call); shift > 0) {
        auto const size = ceil_div(call.n, std::size_t{1} << shift);
        auto lease = s.scratch->acquire(on, aligned_256(size * s.value_bytes), {});
        // No scratch, as in a capture that nothing was reserved for: slower, not wrong.
        if (lease) {
            held = *std::move(lease);
            in.sample = held.get();
            in.size = size;
            in.shift = shift;
            KILN_CHECK(launch(s.kernels[bounds_kernel::make_sample], on,
                              ceil_div(size, static_cast<std::size_t>(s.info.threads)), s.info.threads,
                              {in.sorted, in.n, in.sample, in.size, in.shift}));
        }
    }
    auto const threads = many_threads(s.info);
    auto const multiprocessors = static_cast<std::size_t>(std::max(1, s.context->info().multiprocessors));
    auto const blocks = std::min(ceil_div(call.count, static_cast<std::size_t>(threads)),
                                 multiprocessors * (few ? few_blocks_per_multiprocessor : blocks_per_multiprocessor));
    std::uint64_t const count = call.count;
    int const wide = call.index_width == 8 ? 1 : 0;
    return launch(s.kernels[bounds_kernel::many_queries], on, blocks, threads,
                  {in, call.queries, count, call.out, wide, state});
}

}  // namespace

result<bounds> bounds::make(bound_side side, element_type type, op const& by, prim_options const& how) {
    KILN_TRY(auto what, specialisation::make(bounds_request(side, std::move(type), by), how));
    return bounds{std::move(what), &by};
}

result<void> bounds::run(stream_ref on, bounds_call const& call) const {
    auto const& s = *what_;
    if (call.index_width == 4 && call.n > 0xffffffffU) {
        return fail(errc::invalid_argument, "{}: {} sorted items do not fit a 32-bit index; use a 64-bit one", s.name,
                    call.n);
    }
    KILN_TRY(auto const scope, call_scope::enter(s));
    bool const many = call.count >= least_queries && call.n >= least_sorted;
    return many ? run_many(s, on, call, state_) : run_few(s, on, call, state_);
}

}  // namespace kiln::prims
