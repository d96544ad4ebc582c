// SPDX-License-Identifier: Apache-2.0
#include "prims/specialisation.hpp"

namespace kiln::prims {

namespace {
struct scan_kernel {
    enum { init_states, main_pass };
};
}  // namespace

result<scan> scan::make(scan_form form, element_type type, op const& by, prim_options const& how) {
    KILN_TRY(auto what, specialisation::make(scan_request(form, std::move(type), by), how));
    scan out{std::move(what), &by};
    out.form_ = form;
    return out;
}

std::size_t scan::scratch_bytes(std::size_t n) const noexcept {
    auto const tiles = what_->tiles(n);
    return tiles <= 1 ? 0 : tile_states_of(what_->info).bytes(tiles);
}

result<void> scan::run(stream_ref on, void const* in, void* out, std::size_t n, void const* init,
                       scratch_span scratch) const {
    if (n == 0) return {};
    auto const& s = *what_;
    auto const count = s.tiles(n);
    if (count > most_blocks) return too_many(s, n);
    KILN_TRY(auto const scope, call_scope::enter(s));
    KILN_TRY(auto const lease, s.scratch->acquire(on, scratch_bytes(n), scratch));
    void* const memory = lease.get();
    int const tiles = static_cast<int>(count);
    std::uint64_t const items = n;
    KILN_TRY(auto const start, clear_tile_states(s.kernels[scan_kernel::init_states], on, memory, tiles));
    if (form_ == scan_form::inclusive)
        return launch(s.kernels[scan_kernel::main_pass], on, count, s.info.threads,
                      {in, out, memory, tiles, items, state_}, start);
    return launch(s.kernels[scan_kernel::main_pass], on, count, s.info.threads,
                  {in, out, memory, tiles, items, argument::bytes_at{init}, state_}, start);
}

}  // namespace kiln::prims
