// SPDX-License-Identifier: Apache-2.0
//
// GPUs, streams, events and plain device memory. Owners (stream, device_event, device_memory) release what
// they hold and keep their context alive; stream_ref borrows. Every owner knows its device. The driver is
// opened on first need, so merely linking costs a machine without a GPU nothing. Any thread may use any
// object; one object is not changed by two threads at once. Calls here leave the thread's current CUDA
// context as they found it. Nothing blocks except what ends in _sync.
#pragma once

#include <kiln/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;

namespace KILN_PUBLIC kiln {

namespace cuda {
class context;
}

struct device_info {
    int ordinal = 0;
    std::string name;
    int major = 0;  // compute capability
    int minor = 0;
    std::array<std::uint8_t, 16> uuid{};
    std::uint64_t memory_bytes = 0;
    int multiprocessors = 0;
    int driver_version = 0;  // CUDA version the driver supports, as 13000 for 13.0

    // What to compile for: "sm_90".
    [[nodiscard]] std::string target() const;
    // "GPU-01234567-89ab-...", as nvidia-smi prints it.
    [[nodiscard]] std::string uuid_text() const;
};

// Never empty: errc::no_device with a remedy where there is no driver or no GPU.
[[nodiscard]] result<std::vector<device_info>> devices();
[[nodiscard]] result<device_info> device(int ordinal);

class stream;

// Borrows a stream: a CUstream, a cudaStream_t or a kiln::stream; null is the legacy default stream.
class stream_ref {
public:
    constexpr stream_ref(CUstream_st* handle = nullptr) noexcept : handle_{handle} {}
    constexpr stream_ref(std::nullptr_t) noexcept {}
    stream_ref(stream const& owner) noexcept;

    [[nodiscard]] constexpr CUstream_st* get() const noexcept { return handle_; }

private:
    CUstream_st* handle_ = nullptr;
};

// Does not synchronise with the legacy default stream (CU_STREAM_NON_BLOCKING). Destruction does not wait:
// work already queued still runs.
class stream {
public:
    [[nodiscard]] static result<stream> make(int device = 0);
    [[nodiscard]] static result<stream> make(std::shared_ptr<cuda::context const> where);

    stream(stream&& other) noexcept;
    stream& operator=(stream&& other) noexcept;
    ~stream();

    [[nodiscard]] CUstream_st* get() const noexcept { return handle_; }
    [[nodiscard]] int device() const noexcept;
    // Blocks until everything queued has run; reports errors of that work.
    result<void> wait_sync() const;
    // True when everything queued has run.
    [[nodiscard]] result<bool> idle() const;

private:
    stream(std::shared_ptr<cuda::context const> where, CUstream_st* handle) noexcept;
    void reset() noexcept;

    std::shared_ptr<cuda::context const> context_;
    CUstream_st* handle_ = nullptr;
};

inline stream_ref::stream_ref(stream const& owner) noexcept : handle_{owner.get()} {}

enum class event_timing { on, off };

// A mark in a stream's work.
class device_event {
public:
    [[nodiscard]] static result<device_event> make(int device = 0, event_timing timing = event_timing::on);
    [[nodiscard]] static result<device_event> make(std::shared_ptr<cuda::context const> where,
                                                   event_timing timing = event_timing::on);

    device_event(device_event&& other) noexcept;
    device_event& operator=(device_event&& other) noexcept;
    ~device_event();

    [[nodiscard]] CUevent_st* get() const noexcept { return handle_; }
    [[nodiscard]] int device() const noexcept;
    // The stream must be of the same device.
    result<void> record(stream_ref on);
    // What is queued on `on` from now on, in any stream of any device, waits for the mark; the host does not.
    result<void> hold(stream_ref on) const;
    // True when the work before the mark has run; also true before the first record.
    [[nodiscard]] result<bool> reached() const;
    result<void> wait_sync() const;

private:
    device_event(std::shared_ptr<cuda::context const> where, CUevent_st* handle) noexcept;
    void reset() noexcept;
    friend result<double> elapsed_ms(device_event const& from, device_event const& to);

    std::shared_ptr<cuda::context const> context_;
    CUevent_st* handle_ = nullptr;
};

// Milliseconds on the device between two marks that have both been reached, with timing on.
[[nodiscard]] result<double> elapsed_ms(device_event const& from, device_event const& to);

// Uninitialised device memory. Copies are ordered on the stream they name and wait for it: for tests, examples and
// set-up, not for hot paths.
class device_memory {
public:
    [[nodiscard]] static result<device_memory> make(std::size_t bytes, int device = 0);
    [[nodiscard]] static result<device_memory> make(std::size_t bytes, std::shared_ptr<cuda::context const> where);

    device_memory(device_memory&& other) noexcept;
    device_memory& operator=(device_memory&& other) noexcept;
    ~device_memory();

    [[nodiscard]] void* get() const noexcept { return address_; }
    template <class T>
    [[nodiscard]] T* as() const noexcept {
        return static_cast<T*>(address_);
    }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
    [[nodiscard]] int device() const noexcept;

    // More bytes than there are here: errc::invalid_argument.
    result<void> upload_sync(stream_ref on, std::span<std::byte const> from);
    result<void> download_sync(stream_ref on, std::span<std::byte> to) const;
    template <class T>
    result<void> upload_sync(stream_ref on, std::vector<T> const& from) {
        static_assert(std::is_trivially_copyable_v<T>);
        return upload_sync(on, std::as_bytes(std::span{from}));
    }
    template <class T>
    result<void> download_sync(stream_ref on, std::vector<T>& to) const {
        static_assert(std::is_trivially_copyable_v<T>);
        return download_sync(on, std::as_writable_bytes(std::span{to}));
    }
    // Queued: every byte becomes `value`.
    result<void> fill(stream_ref on, std::uint8_t value);

private:
    device_memory(std::shared_ptr<cuda::context const> where, void* address, std::size_t bytes) noexcept;
    void reset() noexcept;

    std::shared_ptr<cuda::context const> context_;
    void* address_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace kiln
