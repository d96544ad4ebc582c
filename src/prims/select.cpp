// SPDX-License-Identifier: Apache-2.0
#include "prims/specialisation.hpp"

namespace kiln::prims {

namespace {

struct select_kernel {
    enum { init_states, main_pass };
};

// Which part of the input a launch gets: as in the device text.
struct part_of_input {
    std::uint64_t before;
    std::uint64_t const* kept_before;
};

// Whole tiles that a launch can count with 31 bits.
std::size_t most_items(specialisation const& s) { return 0x7fffffff / s.info.tile() * s.info.tile(); }

struct layout {
    std::size_t states = 0;
    std::size_t total = 0;
};
layout layout_for(specialisation const& s, std::size_t n) {
    auto const tiles = s.tiles(std::min(n, most_items(s)));
    if (tiles <= 1) return {};
    auto const states = tile_states_of(s.info).bytes(tiles);
    // Counts of the parts so far, two by turns.
    return {states, states + (n > most_items(s) ? 256 : 0)};
}

}  // namespace

result<select> select::make(select_form form, element_type type, op const* by, prim_options const& how) {
    KILN_TRY(auto what, specialisation::make(select_request(form, std::move(type), by), how));
    return select{std::move(what), by};
}

std::size_t select::scratch_bytes(std::size_t n) const noexcept { return layout_for(*what_, n).total; }

result<void> select::run(stream_ref on, select_call const& call) const {
    auto const& s = *what_;
    KILN_TRY(auto const scope, call_scope::enter(s));
    if (call.n == 0) return set_zero(s, on, call.count, sizeof(std::uint64_t));
    auto const shape = layout_for(s, call.n);
    KILN_TRY(auto const lease, s.scratch->acquire(on, shape.total, call.scratch));
    void* const memory = lease.get();
    auto* const counts = reinterpret_cast<std::uint64_t*>(lease.get() + shape.states);

    part_of_input where{0, nullptr};
    for (std::size_t index = 0; where.before < call.n; ++index) {
        auto const left = call.n - where.before;
        auto const items = std::min(left, most_items(s));
        auto const tiles = static_cast<int>(s.tiles(items));
        auto const n = static_cast<std::int32_t>(items);
        std::uint64_t* const kept = items == left ? call.count : counts + index % 2;
        KILN_TRY(auto const start, clear_tile_states(s.kernels[select_kernel::init_states], on, memory, tiles));
        // By mask the kernel has no operator, and one argument less than is given here.
        KILN_CHECK(launch(s.kernels[select_kernel::main_pass], on, static_cast<std::size_t>(tiles), s.info.threads,
                          {call.in, call.mask, call.out, kept, memory, tiles, n, where, state_}, start));
        where = {where.before + items, kept};
    }
    return {};
}

}  // namespace kiln::prims
