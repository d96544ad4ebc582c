// SPDX-License-Identifier: Apache-2.0
#include "prims/specialisation.hpp"

namespace kiln::prims {

namespace {

std::byte const* advanced(void const* at, std::size_t bytes) { return static_cast<std::byte const*>(at) + bytes; }
std::byte* advanced(void* at, std::size_t bytes) { return static_cast<std::byte*>(at) + bytes; }

}  // namespace

result<transform> transform::make(element_type from, element_type to, op const& by, prim_options const& how) {
    KILN_TRY(auto what, specialisation::make(transform_request(std::move(from), std::move(to), by), how));
    return transform{std::move(what), &by};
}

result<void> transform::run(stream_ref on, void const* in, void* out, std::size_t n) const {
    auto const& s = *what_;
    KILN_TRY(auto const scope, call_scope::enter(s));
    for (std::size_t done = 0; done < n;) {
        std::uint64_t const items = std::min(n - done, most_blocks * s.info.tile());
        void const* const from = advanced(in, done * s.value_bytes);
        void* const to = advanced(out, done * s.mapped_bytes);
        KILN_CHECK(launch(s.kernels[0], on, s.tiles(items), s.info.threads, {from, to, items, state_}));
        done += items;
    }
    return {};
}

result<gather> gather::make(element_type type, element_type index, prim_options const& how) {
    KILN_TRY(auto what, specialisation::make(gather_request(std::move(type), std::move(index)), how));
    return gather{std::move(what), nullptr};
}

result<void> gather::run(stream_ref on, void const* in, void const* index, void* out, std::size_t n) const {
    auto const& s = *what_;
    KILN_TRY(auto const scope, call_scope::enter(s));
    for (std::size_t done = 0; done < n;) {
        std::uint64_t const items = std::min(n - done, most_blocks * s.info.tile());
        void const* const indices = advanced(index, done * s.mapped_bytes);
        void* const to = advanced(out, done * s.value_bytes);
        KILN_CHECK(launch(s.kernels[0], on, s.tiles(items), s.info.threads, {in, indices, to, items}));
        done += items;
    }
    return {};
}

}  // namespace kiln::prims
