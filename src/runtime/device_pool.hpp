// SPDX-License-Identifier: Apache-2.0
//
// The allocator of one device: see <kiln/runtime/memory.hpp>. Everything in Kiln that needs device memory for data or scratch
// takes it from here.
#pragma once

#include "cuda/context.hpp"

#include <kiln/runtime/memory.hpp>

#include <atomic>
#include <mutex>

namespace kiln::runtime {

struct pool_settings {
    memory_tier tier = memory_tier::pool;
    std::uint64_t limit = 0;
    // From environment and file.
    [[nodiscard]] static pool_settings load();
};

class device_pool {
public:
    static constexpr std::size_t alignment = 256;
    static constexpr int most_retries = 3;

    device_pool(std::shared_ptr<cuda::context const> where, pool_settings settings);
    device_pool(std::shared_ptr<cuda::context const> where, user_allocator from);
    device_pool(device_pool const&) = delete;
    device_pool& operator=(device_pool const&) = delete;
    ~device_pool();

    // The process's pool of a device, made at the first call and kept.
    [[nodiscard]] static result<device_pool*> of(int device);
    // Null before the first of().
    [[nodiscard]] static device_pool* existing(int device) noexcept;

    // Ordered on the stream: usable by work queued there after this returns. Never null; 0 bytes are 1.
    [[nodiscard]] result<void*> allocate(stream_ref on, std::size_t bytes);
    // Free for others once the work queued on the stream before has run. `bytes` as allocated.
    void deallocate(stream_ref on, void* memory, std::size_t bytes) noexcept;

    [[nodiscard]] memory_tier tier() const noexcept { return tier_; }
    // The driver's pool, of which nobody has had anything yet and nothing is counted: the first of it takes 11 ms on an H200.
    [[nodiscard]] bool is_asleep() const noexcept {
        return tier_ == memory_tier::pool && limit_ == 0 && allocations_.load(std::memory_order_relaxed) == 0;
    }
    [[nodiscard]] memory_status status() const;
    [[nodiscard]] result<admission> admit(std::uint64_t bytes) const;
    [[nodiscard]] result<void> trim_sync();
    [[nodiscard]] std::shared_ptr<cuda::context const> const& context() const noexcept { return context_; }

    // Called when memory has run out, to give back what is merely kept; returns when that has happened. It may not
    // trim a pool itself. Until the token dies.
    using subscription = std::shared_ptr<void>;
    [[nodiscard]] static subscription on_pressure(std::function<void(int device)> release);

    // For tests: the nth allocation from now, and `times` after it, fails as if the device were full.
    void fail_at(std::int64_t nth, std::int64_t times = 1) noexcept;

private:
    void set_up(memory_tier wanted);
    void fall_back(std::string why);
    [[nodiscard]] CUresult take(CUdeviceptr& out, stream_ref on, std::size_t bytes);
    [[nodiscard]] bool reserve(std::size_t bytes) noexcept;
    void unreserve(std::size_t bytes) noexcept;
    [[nodiscard]] result<void*> recover(stream_ref on, std::size_t bytes);
    [[nodiscard]] error none_left(std::size_t bytes) const;
    [[nodiscard]] bool injected() noexcept;

    std::shared_ptr<cuda::context const> context_;
    memory_tier tier_ = memory_tier::none;
    std::uint64_t limit_ = 0;
    CUmemoryPool pool_ = nullptr;
    user_allocator user_;
    std::string note_;
    std::atomic<std::uint64_t> in_use_{0}, peak_{0}, allocations_{0}, retries_{0}, recovered_{0};
    std::atomic<std::int64_t> countdown_{0}, failures_{0};
    std::atomic<bool> faults_{false};
    std::mutex recovery_;  // one thread trims at a time
};

}  // namespace kiln::runtime
