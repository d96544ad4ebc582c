// SPDX-License-Identifier: Apache-2.0
//
// Where device memory comes from. By default a stream-ordered pool per device, grown as needed and kept
// (KILN_GPU_POOL_LIMIT bounds it). KILN_GPU_OOM_SAFETY=1 adds recovery: when memory runs out, the pool is trimmed, caches
// are released and the allocation is tried again, three times at most. KILN_GPU_MANAGED_MEMORY=1 takes managed memory
// instead, for data larger than the device. A program with an allocator of its own plugs it in. Nothing is set up before
// the first allocation, which needs a context; what could not be set up is said in the status and in an event.
// Safe from any thread.
#pragma once

#include <kiln/device.hpp>

#include <functional>
#include <utility>

namespace KILN_PUBLIC kiln {

enum class memory_tier : std::uint8_t { none, pool, pool_safe, managed, user };
// "none", "pool", "pool-safe", "managed", "user".
[[nodiscard]] std::string_view name_of(memory_tier tier) noexcept;

struct memory_status {
    memory_tier tier = memory_tier::none;  // none: nothing was allocated yet, or there is no pool (see note)
    std::uint64_t limit = 0;               // bytes; 0: the device's memory is the limit
    std::uint64_t in_use = 0, peak = 0;    // bytes that callers hold, and the most they ever held
    std::uint64_t reserved = 0;            // bytes the pool keeps from the driver
    std::uint64_t allocations = 0;
    std::uint64_t retries = 0, recovered = 0;  // of pool-safe
    std::string note;                          // why the tier is not the one asked for; else empty
};
// Touches no driver before the first allocation.
[[nodiscard]] memory_status memory_of(int device = 0);

struct admission {
    bool admitted = false;
    std::uint64_t fits = 0;  // bytes that could be had now, in one or several pieces
};
// Whether a stage that needs this many bytes at once should start; nothing is set aside.
[[nodiscard]] result<admission> admit(std::uint64_t bytes, int device = 0);

// Gives what is free in the pool, and what caches hold, back to the driver. Blocks until the device is idle.
[[nodiscard]] result<void> trim_memory_sync(int device = 0);

// A program's own allocator: both are called from any thread, ordered on the stream.
struct user_allocator {
    std::function<void*(CUstream_st* on, std::size_t bytes, std::size_t alignment)> allocate;  // null: none left
    std::function<void(CUstream_st* on, void* memory, std::size_t bytes, std::size_t alignment)> deallocate;
};
// Before the first allocation on the device; errc::invalid_argument afterwards.
[[nodiscard]] result<void> use_allocator(user_allocator from, int device = 0);

// The same for an asynchronous cuda::mr resource, which must outlive the process's use of Kiln.
template <class Resource>
[[nodiscard]] result<void> use_resource(Resource& from, int device = 0) {
    user_allocator by;
    by.allocate = [&from](CUstream_st* on, std::size_t bytes, std::size_t alignment) -> void* {
        if constexpr (requires { from.allocate_async(bytes, alignment, on); })
            return from.allocate_async(bytes, alignment, on);
        else return from.allocate(on, bytes, alignment);
    };
    by.deallocate = [&from](CUstream_st* on, void* memory, std::size_t bytes, std::size_t alignment) {
        if constexpr (requires { from.deallocate_async(memory, bytes, alignment, on); })
            from.deallocate_async(memory, bytes, alignment, on);
        else from.deallocate(on, memory, bytes, alignment);
    };
    return use_allocator(std::move(by), device);
}

}  // namespace kiln
