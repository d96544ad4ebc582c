// SPDX-License-Identifier: Apache-2.0
#include "prims/prim_info.hpp"

namespace kiln::prims {

namespace {
constexpr std::uint32_t abi = 3;  // 2: kernels that follow another wait for it. 3: segmented_reduce_block takes a queue
constexpr std::size_t words = 16;
}  // namespace

result<prim_info> decode_info(base::byte_span data) {
    if (data.size() != words * 4)
        return fail(errc::corrupt, "constants of a primitive: {} bytes instead of {}", data.size(), words * 4);
    base::byte_reader in{data};
    if (auto const found = in.get_u32(); found != abi) {
        return fail(errc::unsupported, "constants of a primitive: version {}, this Kiln reads {}", found, abi);
    }
    in.get_u32();  // CUB's version
    in.get_u32();  // architecture
    auto const number = [&] { return static_cast<int>(in.get_u32()); };
    prim_info out;
    out.threads = number();
    out.items = number();
    for (auto& value : out.more) value = number();
    if (out.threads < 1 || out.threads > 1024 || out.items < 1 || out.items > 1024) {
        return fail(errc::corrupt, "constants of a primitive: {} threads, {} items", out.threads, out.items);
    }
    return out;
}

tile_states tile_states_of(prim_info const& info) noexcept {
    return {static_cast<std::size_t>(info.more[0]), static_cast<std::size_t>(info.more[1]),
            static_cast<std::size_t>(info.more[2])};
}

std::size_t tile_states::bytes(std::size_t tiles) const noexcept {
    auto const states = tiles + padding;
    if (payload == 0) return aligned_256(states * descriptor);
    // CUB lays the three arrays out at multiples of 256 and may first move the start up.
    return aligned_256(states * descriptor) + 2 * aligned_256(states * payload) + 256;
}

}  // namespace kiln::prims
