// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/buffer.hpp>

#include "cuda/activity.hpp"
#include "cuda/context.hpp"
#include "runtime/device_pool.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

namespace kiln {

namespace {

using cuda::call;
using cuda::driver_api;

constexpr std::align_val_t host_alignment{64};

CUdeviceptr number_of(void const* memory) noexcept { return reinterpret_cast<CUdeviceptr>(memory); }

cuda::host_memory kind_of(residency where) noexcept {
    return where == residency::pinned ? cuda::host_memory::pinned : cuda::host_memory::pageable;
}

// Pinned pages for fences, reused for ever: pinning costs a hundred microseconds. Each that is free holds the address of
// the next, so that giving one back needs no memory.
struct fence_slots {
    std::mutex mutex;
    std::map<int, std::byte*> free;  // the first of each device
};
fence_slots& slots() {
    static auto* const all = new fence_slots;
    return *all;
}

result<std::byte*> take_slot(int device) {
    {
        auto& all = slots();
        std::scoped_lock const lock{all.mutex};
        if (auto& first = all.free[device]; first != nullptr) {
            auto* const out = first;
            std::memcpy(&first, out, sizeof first);
            return out;
        }
    }
    KILN_TRY(auto const where, cuda::context::of(device));
    KILN_TRY(auto const scope, cuda::current_context::enter(*where));
    void* made = nullptr;
    KILN_CHECK(call<&driver_api::mem_host_alloc>(where->api(), &made, fence::most_bytes, 0U));
    return static_cast<std::byte*>(made);
}

}  // namespace

storage storage::on_host(std::size_t bytes) {
    storage out;
    auto* const made = ::operator new(std::max<std::size_t>(bytes, 1), host_alignment);
    out.keep_ = std::shared_ptr<void>{made, [](void* p) { ::operator delete(p, host_alignment); }};
    out.data_ = made;
    out.bytes_ = bytes;
    out.owns_ = true;
    return out;
}

result<storage> storage::pinned(std::size_t bytes, int device) {
    KILN_TRY(auto where, cuda::context::of(device));
    KILN_TRY(auto const scope, cuda::current_context::enter(*where));
    void* made = nullptr;
    KILN_CHECK(call<&driver_api::mem_host_alloc>(where->api(), &made, std::max<std::size_t>(bytes, 1), 0U));
    storage out;
    out.keep_ =
        std::shared_ptr<void>{made, [where](void* p) { cuda::release_in<&driver_api::mem_free_host>(*where, p); }};
    out.data_ = made;
    out.bytes_ = bytes;
    out.where_ = residency::pinned;
    out.device_ = device;
    out.owns_ = true;
    return out;
}

result<storage> storage::on_device(stream_ref on, std::size_t bytes, int device) {
    KILN_TRY(auto* const pool, runtime::device_pool::of(device));
    KILN_TRY(auto* const made, pool->allocate(on, bytes));
    storage out;
    out.keep_ = std::shared_ptr<void>{made, [pool, on, bytes](void* p) { pool->deallocate(on, p, bytes); }};
    out.data_ = made;
    out.bytes_ = bytes;
    out.where_ = pool->tier() == memory_tier::managed ? residency::managed : residency::device;
    out.device_ = device;
    out.owns_ = true;
    return out;
}

storage storage::borrow(void* data, std::size_t bytes, residency where, int device, std::shared_ptr<void const> keep) {
    storage out;
    out.keep_ = std::move(keep);
    out.data_ = data;
    out.bytes_ = bytes;
    out.where_ = where;
    out.device_ = device;
    return out;
}

result<storage> storage::to_device(stream_ref on, int device) const {
    if (kiln::on_device(where_) && device_ == device) return *this;
    KILN_TRY(auto out, on_device(on, bytes_, device));
    if (bytes_ == 0) return out;
    KILN_TRY(auto const where, cuda::context::of(device));
    KILN_TRY(auto const scope, cuda::current_context::enter(*where));
    if (kiln::on_device(where_)) {
        KILN_CHECK(cuda::note_transfer({transfer_direction::on_device, bytes_, "buffer::to_device"}));
        KILN_CHECK(call<&driver_api::memcpy_dtod_async>(where->api(), number_of(out.data_), number_of(data_), bytes_,
                                                        on.get()));
        return out;
    }
    KILN_CHECK(cuda::note_transfer({transfer_direction::to_device, bytes_, "buffer::to_device", kind_of(where_)}));
    KILN_CHECK(call<&driver_api::memcpy_htod_async>(where->api(), number_of(out.data_), static_cast<void const*>(data_),
                                                    bytes_, on.get()));
    return out;
}

result<storage> storage::to_host_sync(stream_ref on) const {
    if (!kiln::on_device(where_)) return *this;
    KILN_CHECK(cuda::note_transfer({transfer_direction::to_host, bytes_, "buffer::to_host_sync"}));
    KILN_CHECK(cuda::note_sync("buffer::to_host_sync"));
    KILN_TRY(auto const where, cuda::context::of(device_));
    KILN_TRY(auto const scope, cuda::current_context::enter(*where));
    auto out = on_host(bytes_);
    if (bytes_ > 0)
        KILN_CHECK(call<&driver_api::memcpy_dtoh_async>(where->api(), out.data_, number_of(data_), bytes_, on.get()));
    KILN_CHECK(call<&driver_api::stream_synchronize>(where->api(), on.get()));
    return out;
}

result<fence> fence::make(stream_ref on, int device) {
    KILN_TRY(auto* const slot, take_slot(device));
    return fence{on, device, slot};
}

fence::fence(fence&& other) noexcept
    : stream_{other.stream_},
      device_{other.device_},
      slots_{std::exchange(other.slots_, nullptr)},
      used_{other.used_},
      is_awaited_{other.is_awaited_} {}

// What copies may still be written to, because nobody waited for them, is nobody's any more.
fence::~fence() {
    if (slots_ == nullptr || is_awaited_) return;
    auto& all = slots();
    std::scoped_lock const lock{all.mutex};
    auto& first = all.free.find(device_)->second;  // since the slot was taken
    std::memcpy(slots_, &first, sizeof first);
    first = slots_;
}

result<std::size_t> fence::add_bytes(void const* on_device, std::size_t bytes) {
    auto const at = (used_ + 15) / 16 * 16;
    if (at + bytes > most_bytes)
        return fail(errc::invalid_argument, "fence: more than {} bytes; make a second one", most_bytes);
    KILN_CHECK(cuda::note_transfer({transfer_direction::to_host, bytes, "fence", cuda::host_memory::pinned}));
    KILN_TRY(auto const where, cuda::context::of(device_));
    KILN_TRY(auto const scope, cuda::current_context::enter(*where));
    is_awaited_ = true;
    KILN_CHECK(call<&driver_api::memcpy_dtoh_async>(where->api(), static_cast<void*>(slots_ + at), number_of(on_device),
                                                    bytes, stream_.get()));
    used_ = at + bytes;
    return at;
}

result<void> fence::wait_sync() {
    KILN_CHECK(cuda::note_sync("fence"));
    KILN_TRY(auto const where, cuda::context::of(device_));
    KILN_TRY(auto const scope, cuda::current_context::enter(*where));
    KILN_CHECK(call<&driver_api::stream_synchronize>(where->api(), stream_.get()));
    is_awaited_ = false;
    return {};
}

}  // namespace kiln
