// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_pool.hpp"

#include "base/config.hpp"
#include "cuda/activity.hpp"

#include <kiln/event.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <new>
#include <type_traits>

namespace kiln {

namespace runtime {

namespace {

using cuda::call;
using cuda::driver_api;

constexpr std::size_t most_devices = 64;

struct pool_table {
    std::mutex mutex;  // making
    std::array<std::atomic<device_pool*>, most_devices> made{};
    std::map<int, user_allocator> waiting;  // given before their pool was made
    std::vector<std::weak_ptr<std::function<void(int)>>> on_pressure;
};
// Other threads may allocate until the very end. Made where there is memory for it already: who asks whether there is a pool cannot fail.
pool_table& table() noexcept {
    static_assert(std::is_nothrow_default_constructible_v<pool_table>);
    alignas(pool_table) static std::byte place[sizeof(pool_table)];
    static auto* const all = new (place) pool_table;
    return *all;
}

CUdeviceptr number_of(void* memory) noexcept { return reinterpret_cast<CUdeviceptr>(memory); }

bool has_pools(driver_api const& api) {
    return api.mem_pool_create != nullptr && api.mem_pool_set_attribute != nullptr && api.mem_pool_trim_to != nullptr &&
           api.mem_alloc_from_pool_async != nullptr && api.mem_free_async != nullptr;
}

}  // namespace

pool_settings pool_settings::load() {
    auto const settings = base::config::load();
    return {.tier = settings.flag("KILN_GPU_MANAGED_MEMORY") ? memory_tier::managed
                    : settings.flag("KILN_GPU_OOM_SAFETY")   ? memory_tier::pool_safe
                                                             : memory_tier::pool,
            .limit = settings.size("KILN_GPU_POOL_LIMIT").value_or(0)};
}

device_pool::device_pool(std::shared_ptr<cuda::context const> where, pool_settings settings)
    : context_{std::move(where)}, limit_{settings.tier == memory_tier::managed ? 0 : settings.limit} {
    set_up(settings.tier);
}

device_pool::device_pool(std::shared_ptr<cuda::context const> where, user_allocator from)
    : context_{std::move(where)}, tier_{memory_tier::user}, user_{std::move(from)} {}

void device_pool::set_up(memory_tier wanted) {
    if (wanted == memory_tier::managed) {
        tier_ = wanted;
        return;
    }
    auto const& api = context_->api();
    if (!has_pools(api)) return fall_back("this driver has no memory pools; 11.2 or newer is needed");
    auto const scope = cuda::current_context::enter(*context_);
    if (!scope) return fall_back(scope.error().message());
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = context_->device()};
    if (auto made = call<&driver_api::mem_pool_create>(api, &pool_, static_cast<CUmemPoolProps const*>(&properties));
        !made) {
        pool_ = nullptr;
        return fall_back(made.error().message());
    }
    // What was freed stays in the pool: giving it back would cost the next allocation a millisecond.
    cuuint64_t keep = ~cuuint64_t{0};
    if (auto kept = call<&driver_api::mem_pool_set_attribute>(api, pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                                              static_cast<void*>(&keep));
        !kept) {
        note_ = kept.error().message();
    }
    tier_ = wanted;
}

void device_pool::fall_back(std::string why) {
    tier_ = memory_tier::none;
    note_ = std::move(why);
    event_log::process().emit({.kind = event_kind::fell_back, .reason = "memory-pool", .detail = note_});
}

device_pool::~device_pool() {
    if (pool_ != nullptr && context_->api().mem_pool_destroy != nullptr)
        cuda::release_in<&driver_api::mem_pool_destroy>(*context_, pool_);
}

result<device_pool*> device_pool::of(int device) {
    if (auto* const ready = existing(device)) return ready;
    if (device < 0 || static_cast<std::size_t>(device) >= most_devices)
        return fail(errc::no_device, "there is no device {}", device);
    KILN_TRY(auto where, cuda::context::of(device));
    auto& all = table();
    std::scoped_lock const lock{all.mutex};
    auto& slot = all.made[static_cast<std::size_t>(device)];
    if (auto* const ready = slot.load(std::memory_order_acquire)) return ready;
    device_pool* made = nullptr;
    if (auto const own = all.waiting.find(device); own != all.waiting.end())
        made = new device_pool{std::move(where), own->second};
    else made = new device_pool{std::move(where), pool_settings::load()};
    slot.store(made, std::memory_order_release);
    return made;
}

device_pool* device_pool::existing(int device) noexcept {
    if (device < 0 || static_cast<std::size_t>(device) >= most_devices) return nullptr;
    return table().made[static_cast<std::size_t>(device)].load(std::memory_order_acquire);
}

bool device_pool::reserve(std::size_t bytes) noexcept {
    auto const after = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (limit_ != 0 && after > limit_) {
        in_use_.fetch_sub(bytes, std::memory_order_relaxed);
        return false;
    }
    auto seen = peak_.load(std::memory_order_relaxed);
    while (after > seen && !peak_.compare_exchange_weak(seen, after, std::memory_order_relaxed)) {
    }
    return true;
}

void device_pool::unreserve(std::size_t bytes) noexcept { in_use_.fetch_sub(bytes, std::memory_order_relaxed); }

bool device_pool::injected() noexcept {
    if (!faults_.load(std::memory_order_relaxed)) return false;
    if (countdown_.fetch_sub(1) > 1) return false;
    if (failures_.fetch_sub(1) > 0) return true;
    faults_.store(false);
    return false;
}

void device_pool::fail_at(std::int64_t nth, std::int64_t times) noexcept {
    countdown_.store(nth);
    failures_.store(times);
    faults_.store(true);
}

CUresult device_pool::take(CUdeviceptr& out, stream_ref on, std::size_t bytes) {
    auto const& api = context_->api();
    if (injected()) return CUDA_ERROR_OUT_OF_MEMORY;
    if (pool_ != nullptr) return api.mem_alloc_from_pool_async(&out, bytes, pool_, on.get());
    if (tier_ == memory_tier::user) {
        auto* const given = user_.allocate(on.get(), bytes, alignment);
        out = number_of(given);
        return given != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (tier_ == memory_tier::managed) return api.mem_alloc_managed(&out, bytes, CU_MEM_ATTACH_GLOBAL);
    return api.mem_alloc(&out, bytes);
}

result<void*> device_pool::allocate(stream_ref on, std::size_t bytes) {
    bytes = std::max<std::size_t>(bytes, 1);
    if (!reserve(bytes)) return tier_ == memory_tier::pool_safe ? recover(on, bytes) : none_left(bytes);
    CUdeviceptr got = 0;
    auto status = CUDA_ERROR_INVALID_CONTEXT;
    // A stream knows its context; entering it costs as much as the allocation.
    if (pool_ != nullptr && on.get() != nullptr) status = take(got, on, bytes);
    if (status == CUDA_ERROR_INVALID_CONTEXT) {
        auto const scope = cuda::current_context::enter(*context_);
        if (!scope) return unreserve(bytes), scope.error();
        status = take(got, on, bytes);
    }
    if (status != CUDA_SUCCESS) {
        unreserve(bytes);
        if (status == CUDA_ERROR_OUT_OF_MEMORY)
            return tier_ == memory_tier::pool_safe ? recover(on, bytes) : none_left(bytes);
        return cuda::driver_error(context_->api(), &context_->api().mem_alloc, status)
            .within(fmt::format("{} bytes on device {}", bytes, context_->device()));
    }
    allocations_.fetch_add(1, std::memory_order_relaxed);
    if (!cuda::current_operation().empty()) cuda::note_allocation(bytes, "device_pool::allocate");
    return reinterpret_cast<void*>(got);
}

// Frees that are queued count only once they have run, so every round waits for the device.
result<void*> device_pool::recover(stream_ref on, std::size_t bytes) {
    std::scoped_lock const lock{recovery_};
    KILN_TRY(auto const scope, cuda::current_context::enter(*context_));
    for (int round = 1; round <= most_retries; ++round) {
        retries_.fetch_add(1, std::memory_order_relaxed);
        event_log::process().emit({.kind = event_kind::fell_back,
                                   .unit = cuda::current_operation(),
                                   .reason = "oom-retry",
                                   .detail = fmt::format("trim and retry {} of {}", round, most_retries),
                                   .value = static_cast<std::int64_t>(bytes)});
        KILN_CHECK(trim_sync());
        if (!reserve(bytes)) continue;
        CUdeviceptr got = 0;
        auto const status = take(got, on, bytes);
        if (status == CUDA_SUCCESS) {
            allocations_.fetch_add(1, std::memory_order_relaxed);
            recovered_.fetch_add(1, std::memory_order_relaxed);
            return reinterpret_cast<void*>(got);
        }
        unreserve(bytes);
        if (status != CUDA_ERROR_OUT_OF_MEMORY)
            return cuda::driver_error(context_->api(), &context_->api().mem_alloc, status);
    }
    return none_left(bytes);
}

void device_pool::deallocate(stream_ref on, void* memory, std::size_t bytes) noexcept {
    if (memory == nullptr) return;
    unreserve(std::max<std::size_t>(bytes, 1));
    if (tier_ == memory_tier::user)
        return user_.deallocate(on.get(), memory, std::max<std::size_t>(bytes, 1), alignment);
    auto const& api = context_->api();
    if (pool_ == nullptr) return cuda::release_in<&driver_api::mem_free>(*context_, number_of(memory));
    if (on.get() != nullptr) return cuda::release<&driver_api::mem_free_async>(api, number_of(memory), on.get());
    if (auto const scope = cuda::current_context::enter(*context_))
        cuda::release<&driver_api::mem_free_async>(api, number_of(memory), on.get());
}

error device_pool::none_left(std::size_t bytes) const {
    auto const used = in_use_.load(std::memory_order_relaxed);
    if (limit_ != 0 && used + bytes > limit_) {
        return fail(
            errc::out_of_memory,
            "device {}: {} bytes asked for, {} of the {} allowed by KILN_GPU_POOL_LIMIT are in use; raise it, or "
            "ask admit() for a size that fits",
            context_->device(), bytes, used, limit_);
    }
    return fail(errc::out_of_memory,
                "device {}: {} bytes asked for with {} in use, and no more are to be had; free something, set "
                "KILN_GPU_OOM_SAFETY=1 to recover, or KILN_GPU_MANAGED_MEMORY=1 for data larger than the device",
                context_->device(), bytes, used)
        .with_status(static_cast<int>(CUDA_ERROR_OUT_OF_MEMORY));
}

result<void> device_pool::trim_sync() {
    KILN_CHECK(cuda::note_sync("trim_memory_sync"));
    {
        // A copy: what is called may allocate or register.
        std::vector<std::weak_ptr<std::function<void(int)>>> release;
        {
            std::scoped_lock const lock{table().mutex};
            std::erase_if(table().on_pressure, [](auto const& weak) { return weak.expired(); });
            release = table().on_pressure;
        }
        for (auto const& weak : release) {
            if (auto const call_it = weak.lock()) (*call_it)(context_->device());
        }
    }
    KILN_TRY(auto const scope, cuda::current_context::enter(*context_));
    KILN_CHECK(call<&driver_api::ctx_synchronize>(context_->api()));
    if (pool_ == nullptr) return {};
    return call<&driver_api::mem_pool_trim_to>(context_->api(), pool_, std::size_t{0});
}

device_pool::subscription device_pool::on_pressure(std::function<void(int)> release) {
    auto shared = std::make_shared<std::function<void(int)>>(std::move(release));
    std::scoped_lock const lock{table().mutex};
    table().on_pressure.push_back(shared);
    return shared;
}

memory_status device_pool::status() const {
    memory_status out{.tier = tier_,
                      .limit = limit_,
                      .in_use = in_use_.load(),
                      .peak = peak_.load(),
                      .reserved = 0,
                      .allocations = allocations_.load(),
                      .retries = retries_.load(),
                      .recovered = recovered_.load(),
                      .note = note_};
    auto const& api = context_->api();
    if (pool_ != nullptr && api.mem_pool_get_attribute != nullptr && !api.state->exiting.load()) {
        cuuint64_t reserved = 0;
        if (api.mem_pool_get_attribute(pool_, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) == CUDA_SUCCESS)
            out.reserved = reserved;
    }
    return out;
}

result<admission> device_pool::admit(std::uint64_t bytes) const {
    if (tier_ == memory_tier::managed || tier_ == memory_tier::user) return admission{true, bytes};
    KILN_TRY(auto const scope, cuda::current_context::enter(*context_));
    std::size_t free = 0, total = 0;
    KILN_CHECK(call<&driver_api::mem_get_info>(context_->api(), &free, &total));
    auto const now = status();
    // What the pool keeps and nobody uses can be handed out again without asking the driver.
    std::uint64_t const idle = now.reserved > now.in_use ? now.reserved - now.in_use : 0;
    std::uint64_t fits = free + idle;
    if (limit_ != 0) fits = std::min(fits, limit_ > now.in_use ? limit_ - now.in_use : 0);
    return admission{bytes <= fits, fits};
}

}  // namespace runtime

std::string_view name_of(memory_tier tier) noexcept {
    switch (tier) {
        case memory_tier::none: return "none";
        case memory_tier::pool: return "pool";
        case memory_tier::pool_safe: return "pool-safe";
        case memory_tier::managed: return "managed";
        case memory_tier::user: return "user";
    }
    return "unknown";
}

memory_status memory_of(int device) {
    auto const* const pool = runtime::device_pool::existing(device);
    return pool != nullptr ? pool->status() : memory_status{};
}

result<admission> admit(std::uint64_t bytes, int device) {
    KILN_TRY(auto* const pool, runtime::device_pool::of(device));
    return pool->admit(bytes);
}

result<void> trim_memory_sync(int device) {
    auto* const pool = runtime::device_pool::existing(device);
    return pool != nullptr ? pool->trim_sync() : result<void>{};
}

result<void> use_allocator(user_allocator from, int device) {
    if (!from.allocate || !from.deallocate)
        return fail(errc::invalid_argument, "use_allocator: both functions are needed");
    auto& all = runtime::table();
    std::scoped_lock const lock{all.mutex};
    if (runtime::device_pool::existing(device) != nullptr) {
        return fail(errc::invalid_argument,
                    "use_allocator: device {} has handed out memory already; call it before anything is allocated",
                    device);
    }
    all.waiting[device] = std::move(from);
    return {};
}

}  // namespace kiln
