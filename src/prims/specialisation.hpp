// SPDX-License-Identifier: Apache-2.0
//
// What a handle points at: the kernels of one request on one device, with everything a call needs side by side. Made
// once, shared by all handles of the process that ask for the same, never changed.
#pragma once

#include "cuda/context.hpp"
#include "prims/prim_info.hpp"
#include "prims/request.hpp"
#include "prims/scratch_pool.hpp"

namespace kiln::prims {

class specialisation {
public:
    // Finds or makes the request's kernels, by the route asked for, and loads them.
    [[nodiscard]] static result<std::shared_ptr<specialisation const>> make(request const& what,
                                                                            prim_options const& how);

    std::string name;
    ready_unit loaded;
    prim_info info;
    std::vector<untyped_kernel> kernels;  // as request::kernels
    std::shared_ptr<cuda::context const> context;
    scratch_pool* scratch = nullptr;
    std::size_t value_bytes = 0;
    std::size_t mapped_bytes = 0;
    // Blocks of the first kernel that fill the device.
    std::size_t resident_blocks = 0;

    [[nodiscard]] std::size_t tiles(std::size_t n) const noexcept { return (n + info.tile() - 1) / info.tile(); }
    [[nodiscard]] std::string const& label() const noexcept { return name; }
};

// Makes the device's context current for the length of a call. A thread that has none keeps it.
class call_scope {
public:
    [[nodiscard]] static result<call_scope> enter(specialisation const& s);

private:
    explicit call_scope(std::optional<cuda::current_context> scope) : scope_{std::move(scope)} {}
    std::optional<cuda::current_context> scope_;
};

struct argument {
    void const* at;
    template <class T>
    argument(T const& value) noexcept : at{&value} {}
    struct bytes_at {
        void const* data;
    };
    argument(bytes_at value) noexcept : at{value.data} {}
};

// Grids beyond 2^31 - 1 blocks are the caller's business.
template <std::size_t N>
[[nodiscard]] result<void> launch(untyped_kernel const& k, stream_ref on, std::size_t blocks, int threads,
                                  argument const (&arguments)[N], launch_start start = launch_start::after_previous) {
    void* pointers[N];
    for (std::size_t i = 0; i < N; ++i) pointers[i] = const_cast<void*>(arguments[i].at);
    return k.launch(
        on, {.grid = static_cast<unsigned>(blocks), .block = static_cast<unsigned>(threads), .start = start}, pointers);
}

inline constexpr std::size_t most_blocks = 0x7fffffff;
// Before a kernel whose tiles look back at their predecessors. Gives how that kernel is to start: a single tile has no
// predecessor and needs nothing done.
[[nodiscard]] result<launch_start> clear_tile_states(untyped_kernel const& init, stream_ref on, void* memory,
                                                     int tiles);
[[nodiscard]] result<void> set_zero(specialisation const& s, stream_ref on, void* at, std::size_t bytes);
[[nodiscard]] result<void> copy(specialisation const& s, stream_ref on, void const* from, void* to, std::size_t bytes);
// errc::unsupported that names the remedy.
[[nodiscard]] error too_many(specialisation const& s, std::size_t n);

}  // namespace kiln::prims
