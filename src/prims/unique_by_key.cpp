// SPDX-License-Identifier: Apache-2.0
#include "prims/specialisation.hpp"

namespace kiln::prims {

namespace {
struct unique_by_key_kernel {
    enum { init_states, main_pass };
};
}  // namespace

result<unique_by_key> unique_by_key::make(element_type key, element_type value, op const& by, prim_options const& how) {
    KILN_TRY(auto what, specialisation::make(unique_request(std::move(key), std::move(value), by, how.items), how));
    return unique_by_key{std::move(what), &by};
}

std::size_t unique_by_key::scratch_bytes(std::size_t n) const noexcept {
    auto const tiles = what_->tiles(n);
    return tiles <= 1 ? 0 : tile_states_of(what_->info).bytes(tiles);
}

result<void> unique_by_key::run(stream_ref on, sort_call const& call, std::uint64_t* count) const {
    auto const& s = *what_;
    auto const blocks = s.tiles(call.n);
    if ((s.info.more[3] == 4 && call.n > 0xffffffffU) || blocks > most_blocks) return too_many(s, call.n);
    KILN_TRY(auto const scope, call_scope::enter(s));
    if (call.n == 0) return set_zero(s, on, count, sizeof(std::uint64_t));
    KILN_TRY(auto const lease, s.scratch->acquire(on, scratch_bytes(call.n), call.scratch));
    void* const memory = lease.get();
    int const tiles = static_cast<int>(blocks);
    std::uint64_t const n = call.n;
    KILN_TRY(auto const start, clear_tile_states(s.kernels[unique_by_key_kernel::init_states], on, memory, tiles));
    return launch(s.kernels[unique_by_key_kernel::main_pass], on, blocks, s.info.threads,
                  {call.keys_in, call.values_in, call.keys_out, call.values_out, count, memory, tiles, n, state_},
                  start);
}

}  // namespace kiln::prims
