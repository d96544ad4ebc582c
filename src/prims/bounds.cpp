// SPDX-License-Identifier: Apache-2.0
#include "prims/specialisation.hpp"

namespace kiln::prims {

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
    std::uint64_t const n = call.n;
    int const wide = call.index_width == 8 ? 1 : 0;
    auto const per_launch = most_blocks * s.info.tile();
    for (std::size_t done = 0; done < call.count;) {
        std::uint64_t const count = std::min(per_launch, call.count - done);
        void const* const queries = static_cast<std::byte const*>(call.queries) + done * s.value_bytes;
        void* const out = static_cast<std::byte*>(call.out) + done * call.index_width;
        KILN_CHECK(launch(s.kernels[0], on, s.tiles(count), s.info.threads,
                          {call.sorted, n, queries, count, out, wide, state_}));
        done += count;
    }
    return {};
}

}  // namespace kiln::prims
