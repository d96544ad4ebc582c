// SPDX-License-Identifier: Apache-2.0
#include "prims/specialisation.hpp"

namespace kiln::prims {

namespace {

struct reduce_kernel {
    enum { partial, last };
};

// As CUB: enough blocks to fill the device a few times over.
constexpr std::size_t oversubscription = 5;

std::size_t last_tile(prim_info const& info) {
    return static_cast<std::size_t>(info.more[0]) * static_cast<std::size_t>(info.more[1]);
}

std::size_t blocks_for(specialisation const& s, std::size_t n) {
    return std::min(s.tiles(n), s.resident_blocks * oversubscription);
}

}  // namespace

result<reduce> reduce::make(element_type type, op const& by, prim_options const& how) {
    KILN_TRY(auto what, specialisation::make(reduce_request(std::move(type), by), how));
    return reduce{std::move(what), &by};
}

std::size_t reduce::scratch_bytes(std::size_t n) const noexcept {
    return n <= last_tile(what_->info) ? 0 : aligned_256(blocks_for(*what_, n) * what_->value_bytes);
}

result<void> reduce::run(stream_ref on, void const* in, std::size_t n, void* out, void const* init,
                         scratch_span scratch) const {
    auto const& s = *what_;
    if (s.tiles(n) > most_blocks) return too_many(s, n);
    KILN_TRY(auto const scope, call_scope::enter(s));
    argument::bytes_at const start{init};
    std::uint64_t items = n;
    if (n <= last_tile(s.info))
        return launch(s.kernels[reduce_kernel::last], on, 1, s.info.more[0], {in, out, items, start, state_});
    KILN_TRY(auto const lease, s.scratch->acquire(on, scratch_bytes(n), scratch));
    void* const partials = lease.get();
    auto const blocks = blocks_for(s, n);
    KILN_CHECK(launch(s.kernels[reduce_kernel::partial], on, blocks, s.info.threads, {in, partials, items, state_}));
    items = blocks;
    return launch(s.kernels[reduce_kernel::last], on, 1, s.info.more[0], {partials, out, items, start, state_},
                  launch_start::early);
}

}  // namespace kiln::prims
