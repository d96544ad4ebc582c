// SPDX-License-Identifier: Apache-2.0
//
// Scratch memory, one block per stream, grown to the largest size asked for and kept. A lease holds its stream's block
// for the time it takes to queue one call: two threads on one stream do not mix their launches, and two streams never
// share. Growth is ordered on the stream: nothing waits. Calls in a stream capture use a block that was reserved for it
// and that belongs to its graphs from then on: whatever stream those run on, no other call touches it.
#pragma once

#include "cuda/context.hpp"
#include "runtime/device_pool.hpp"

#include <kiln/event.hpp>
#include <kiln/prims/untyped.hpp>

#include <map>
#include <mutex>
#include <shared_mutex>

namespace kiln::prims {

class scratch_pool {
    struct block {
        CUdeviceptr data = 0;
        std::size_t bytes = 0;
        bool ordered = false;  // allocated in stream order
        bool pooled = false;   // from memory_
    };
    struct slot {
        std::mutex mutex;
        block current;   // of ordinary calls
        block reserved;  // for the next capture
        block captured;  // of capture `capture`
        cuuint64_t capture = 0;
    };

public:
    class lease {
    public:
        explicit lease(void* data = nullptr) noexcept : data_{data} {}
        lease(void* data, std::unique_lock<std::mutex> lock) noexcept : data_{data}, lock_{std::move(lock)} {}
        [[nodiscard]] std::byte* get() const noexcept { return static_cast<std::byte*>(data_); }

    private:
        void* data_;
        std::unique_lock<std::mutex> lock_;
    };

    // Blocks of ordinary calls come from `memory`, or from the driver where there is none.
    explicit scratch_pool(std::shared_ptr<cuda::context const> where, runtime::device_pool* memory = nullptr);
    scratch_pool(scratch_pool const&) = delete;
    scratch_pool& operator=(scratch_pool const&) = delete;
    ~scratch_pool();

    // The pool of a device, which lives as long as the process.
    [[nodiscard]] static scratch_pool& of(std::shared_ptr<cuda::context const> const& where);

    // `bytes` for one call: the caller's own if it brought any, else the stream's. Nothing is held for 0 bytes. The
    // context must be current.
    [[nodiscard]] result<lease> acquire(stream_ref on, std::size_t bytes, scratch_span own);
    // Sets this many bytes aside for the calls of the next capture on this stream, which share them.
    [[nodiscard]] result<void> reserve(stream_ref on, std::size_t bytes);
    // Frees everything; blocks until the device is idle.
    [[nodiscard]] result<void> trim_sync();
    [[nodiscard]] static result<void> trim_all_sync();

    // Frees the blocks of streams no call is being queued on, after waiting for the device: for when memory has run out.
    void release_idle() noexcept;

    [[nodiscard]] std::size_t held_bytes() const;

private:
    [[nodiscard]] result<slot*> slot_of(stream_ref on, cuuint64_t capture);
    enum class order { of_stream, at_once };
    [[nodiscard]] result<block> allocate(stream_ref on, std::size_t bytes, order when) const;
    [[nodiscard]] result<void> grow(slot& s, stream_ref on, std::size_t bytes);
    [[nodiscard]] result<void> enter_capture(slot& s, cuuint64_t capture, std::size_t bytes);
    void retire(block& b) noexcept;
    // Of a block nothing uses any more.
    void release(block& b) noexcept;

    std::shared_ptr<cuda::context const> context_;
    runtime::device_pool* memory_;
    runtime::device_pool::subscription pressure_;
    std::uint64_t number_;             // unlike its address, no other pool ever has it
    mutable std::shared_mutex mutex_;  // slots_, never their contents
    std::map<unsigned long long, std::unique_ptr<slot>> slots_;
    std::map<CUstream, unsigned long long> numbers_;  // of the stream that had this handle last
    std::mutex retired_mutex_;
    std::vector<block> retired_;  // in use by graphs
};

}  // namespace kiln::prims
