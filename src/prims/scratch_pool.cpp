// SPDX-License-Identifier: Apache-2.0
#include "prims/scratch_pool.hpp"

#include "cuda/activity.hpp"

#include <algorithm>
#include <atomic>

namespace kiln::prims {

namespace {

constexpr std::size_t least_block = std::size_t{64} << 10;
// The first use of the driver's stream-ordered pool takes 11 ms on an H200: a first block of this size is had without. When it is
// outgrown it is kept, because it cannot be given back in the stream's order, so it is not of any size; and once the pool is awake, only
// if it is small.
constexpr std::size_t most_plain_block = std::size_t{32} << 20;
constexpr std::size_t most_when_awake = std::size_t{1} << 20;

// A little more than asked for, so that slowly growing calls do not allocate each time.
std::size_t rounded(std::size_t bytes) {
    return std::max(least_block, (bytes + bytes / 8 + 0xffff) & ~std::size_t{0xffff});
}

struct all_pools {
    std::mutex mutex;
    std::map<int, std::unique_ptr<scratch_pool>> by_device;
};
all_pools& pools() {
    static auto* const all = new all_pools;  // other threads may call until the very end
    return *all;
}

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace

scratch_pool::scratch_pool(std::shared_ptr<cuda::context const> where, runtime::device_pool* memory)
    : context_{std::move(where)}, memory_{memory} {
    static std::atomic<std::uint64_t> made{0};
    number_ = ++made;
}

scratch_pool& scratch_pool::of(std::shared_ptr<cuda::context const> const& where) {
    auto& all = pools();
    std::scoped_lock const lock{all.mutex};
    auto& pool = all.by_device[where->device()];
    if (!pool) {
        auto const memory = runtime::device_pool::of(where->device());
        pool = std::make_unique<scratch_pool>(where, memory ? *memory : nullptr);
        pool->pressure_ = runtime::device_pool::on_pressure([made = pool.get(), device = where->device()](int needy) {
            if (needy == device) made->release_idle();
        });
    }
    return *pool;
}

scratch_pool::~scratch_pool() {
    for (auto const& [id, s] : slots_) {
        for (auto* const b : {&s->current, &s->reserved, &s->captured}) release(*b);
    }
    for (auto& b : retired_) release(b);
}

result<scratch_pool::slot*> scratch_pool::slot_of(stream_ref on, cuuint64_t capture) {
    auto const& api = context_->api();
    // A destroyed stream's handle may come back as another stream; its number never does. While a stream is being captured
    // its number may not be asked for: then it is the stream that had this handle last, which reserve() made sure of.
    unsigned long long id = reinterpret_cast<std::uintptr_t>(on.get());
    if (capture != 0) {
        std::shared_lock const lock{mutex_};
        if (auto const at = numbers_.find(on.get()); at != numbers_.end()) id = at->second;
    } else if (api.stream_get_id != nullptr)
        KILN_CHECK(cuda::call<&cuda::driver_api::stream_get_id>(api, on.get(), &id));

    thread_local struct {
        std::uint64_t pool = 0;
        unsigned long long id = 0;
        slot* found = nullptr;
    } last;
    if (last.pool == number_ && last.id == id) return last.found;
    slot* found = nullptr;
    {
        std::shared_lock const lock{mutex_};
        auto const number = numbers_.find(on.get());
        bool const known = number != numbers_.end() && number->second == id;
        if (auto const at = slots_.find(id); known && at != slots_.end()) found = at->second.get();
    }
    if (found == nullptr) {
        std::unique_lock const lock{mutex_};
        auto& made = slots_[id];
        if (!made) made = std::make_unique<slot>();
        numbers_[on.get()] = id;
        found = made.get();
    }
    last = {number_, id, found};
    return found;
}

result<scratch_pool::lease> scratch_pool::acquire(stream_ref on, std::size_t bytes, scratch_span own) {
    if (bytes == 0) return lease{};
    if (own.data != nullptr) {
        if (own.size < bytes) return too_small("scratch", own.size, bytes);
        if (reinterpret_cast<std::uintptr_t>(own.data) % 256 != 0) {
            return fail(errc::invalid_argument, "scratch at {} is not aligned to 256 bytes",
                        static_cast<void*>(own.data));
        }
        return lease{own.data};
    }
    KILN_TRY(auto const capture, cuda::capture_of(context_->api(), on));
    KILN_TRY(auto* const s, slot_of(on, capture));
    std::unique_lock lock{s->mutex};
    if (capture != 0) {
        KILN_CHECK(enter_capture(*s, capture, bytes));
        return lease{pointer(s->captured.data), std::move(lock)};
    }
    if (s->current.bytes < bytes) KILN_CHECK(grow(*s, on, bytes));
    return lease{pointer(s->current.data), std::move(lock)};
}

result<void> scratch_pool::enter_capture(slot& s, cuuint64_t capture, std::size_t bytes) {
    if (s.capture == capture && s.captured.bytes >= bytes) return {};
    if (s.capture != capture && s.reserved.bytes >= bytes) {
        retire(s.captured);
        s.captured = std::exchange(s.reserved, {});
        s.capture = capture;
        return {};
    }
    return fail(errc::invalid_argument,
                "{} bytes of scratch are needed while the stream is being captured, and nothing can be allocated now: "
                "call reserve() "
                "of every handle the capture uses on this stream before it begins, each time, or hand in scratch",
                bytes);
}

result<void> scratch_pool::reserve(stream_ref on, std::size_t bytes) {
    if (bytes == 0) return {};
    KILN_TRY(auto const capture, cuda::capture_of(context_->api(), on));
    if (capture != 0)
        return fail(errc::invalid_argument,
                    "reserve(): the stream is being captured; call it before the capture begins");
    KILN_TRY(auto* const s, slot_of(on, capture));
    std::unique_lock const lock{s->mutex};
    if (s->reserved.bytes >= bytes) return {};
    KILN_TRY(auto const next, allocate(on, bytes, order::at_once));
    if (s->reserved.data != 0) cuda::release<&cuda::driver_api::mem_free>(context_->api(), s->reserved.data);
    s->reserved = next;
    return {};
}

result<scratch_pool::block> scratch_pool::allocate(stream_ref on, std::size_t bytes, order when) const {
    auto const& api = context_->api();
    block out{.data = 0, .bytes = bytes, .ordered = false, .pooled = false};
    if (when == order::of_stream && memory_ != nullptr) {
        KILN_TRY(auto* const made, memory_->allocate(on, bytes));
        out.data = reinterpret_cast<CUdeviceptr>(made);
        out.ordered = out.pooled = true;
        return out;
    }
    CUresult status = CUDA_ERROR_NOT_SUPPORTED;
    if (when == order::of_stream && api.mem_alloc_async != nullptr && api.mem_free_async != nullptr) {
        status = api.mem_alloc_async(&out.data, bytes, on.get());
        out.ordered = status == CUDA_SUCCESS;
    }
    if (status != CUDA_SUCCESS) status = api.mem_alloc(&out.data, bytes);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {
        return fail(errc::out_of_memory, "device {}: no {} bytes of scratch to be had", context_->device(), bytes)
            .with_status(static_cast<int>(status));
    }
    if (status != CUDA_SUCCESS) return cuda::driver_error(api, &api.mem_alloc, status);
    return out;
}

result<void> scratch_pool::grow(slot& s, stream_ref on, std::size_t bytes) {
    auto const size = rounded(bytes);
    bool const asleep = memory_ == nullptr || memory_->is_asleep();
    bool const plain = s.current.data == 0 && size <= (asleep ? most_plain_block : most_when_awake);
    auto made = allocate(on, size, plain ? order::at_once : order::of_stream);
    if (!made && plain) made = allocate(on, size, order::of_stream);  // the pool may have something to give back
    KILN_TRY(auto const next, std::move(made));
    if (s.current.pooled) {
        memory_->deallocate(on, pointer(s.current.data), s.current.bytes);
    } else if (s.current.ordered) {
        // Freed when the work queued before has run.
        cuda::release<&cuda::driver_api::mem_free_async>(context_->api(), s.current.data, on.get());
    } else {
        retire(s.current);
    }
    s.current = next;
    event_log::process().emit({.kind = event_kind::note,
                               .unit = cuda::current_operation(),
                               .reason = "scratch-grown",
                               .value = static_cast<std::int64_t>(next.bytes)});
    return {};
}

// Something that is queued, or a graph, may use the block: it is kept until trim_sync().
void scratch_pool::retire(block& b) noexcept {
    if (b.data == 0) return;
    std::scoped_lock const lock{retired_mutex_};
    retired_.push_back(std::exchange(b, {}));
}

void scratch_pool::release(block& b) noexcept {
    auto const old = std::exchange(b, {});
    if (old.data == 0) return;
    if (old.pooled) memory_->deallocate(nullptr, pointer(old.data), old.bytes);
    else cuda::release_in<&cuda::driver_api::mem_free>(*context_, old.data);
}

result<void> scratch_pool::trim_sync() {
    KILN_TRY(auto const scope, cuda::current_context::enter(*context_));
    std::unique_lock const lock{mutex_};
    std::vector<std::unique_lock<std::mutex>> held;
    for (auto const& [id, s] : slots_) held.emplace_back(s->mutex);
    // Pooled blocks are given back at once, not in the order of their streams.
    if (memory_ != nullptr) KILN_CHECK(cuda::call<&cuda::driver_api::ctx_synchronize>(context_->api()));
    for (auto const& [id, s] : slots_) {
        for (auto* const b : {&s->current, &s->reserved, &s->captured}) release(*b);
        s->capture = 0;
    }
    std::scoped_lock const retired{retired_mutex_};
    for (auto& b : retired_) release(b);
    retired_.clear();
    return {};
}

void scratch_pool::release_idle() noexcept {
    std::shared_lock const lock{mutex_, std::try_to_lock};
    auto const scope = cuda::current_context::enter(*context_);
    if (!lock || !scope) return;
    std::vector<std::pair<slot*, std::unique_lock<std::mutex>>> idle;
    for (auto const& [id, s] : slots_) {
        if (std::unique_lock held{s->mutex, std::try_to_lock}) idle.emplace_back(s.get(), std::move(held));
    }
    auto const& api = context_->api();
    if (api.ctx_synchronize == nullptr || api.ctx_synchronize() != CUDA_SUCCESS) return;
    for (auto& [s, held] : idle) release(s->current);
}

result<void> scratch_pool::trim_all_sync() {
    auto& all = pools();
    std::scoped_lock const lock{all.mutex};
    for (auto const& [device, pool] : all.by_device) KILN_CHECK(pool->trim_sync());
    return {};
}

std::size_t scratch_pool::held_bytes() const {
    std::shared_lock const lock{mutex_};
    std::size_t total = 0;
    for (auto const& [id, s] : slots_) {
        std::scoped_lock const held{s->mutex};
        total += s->current.bytes + s->reserved.bytes + s->captured.bytes;
    }
    return total;
}

}  // namespace kiln::prims

namespace kiln {
result<void> trim_scratch_sync() { return prims::scratch_pool::trim_all_sync(); }
}  // namespace kiln
