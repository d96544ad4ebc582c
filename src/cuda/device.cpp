// SPDX-License-Identifier: Apache-2.0
#include <kiln/device.hpp>

#include "cuda/activity.hpp"
#include "cuda/context.hpp"

namespace kiln {

using cuda::call;
using cuda::context;
using cuda::current_context;
using cuda::driver_api;
using shared_context = std::shared_ptr<context const>;

namespace {

// For calls whose "not yet" is an answer and not a failure.
result<bool> finished(context const& where, CUresult status, void const* slot) {
    if (status == CUDA_SUCCESS) return true;
    if (status == CUDA_ERROR_NOT_READY) return false;
    return cuda::driver_error(where.api(), slot, status);
}

CUdeviceptr number_of(void* address) noexcept { return reinterpret_cast<CUdeviceptr>(address); }

}  // namespace

std::string device_info::target() const { return fmt::format("sm_{}{}", major, minor); }

std::string device_info::uuid_text() const {
    std::string out = "GPU";
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        bool const dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        out += fmt::format("{}{:02x}", dash ? "-" : "", uuid[i]);
    }
    return out;
}

result<std::vector<device_info>> devices() {
    KILN_TRY(auto const api, cuda::start_driver());
    return cuda::list_devices(*api);
}

result<device_info> device(int ordinal) {
    KILN_TRY(auto const all, devices());
    if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= all.size()) {
        return fail(errc::no_device, "there is no device {}; the driver sees {}", ordinal, all.size());
    }
    return all[static_cast<std::size_t>(ordinal)];
}

// stream

result<stream> stream::make(int device) {
    KILN_TRY(auto where, context::of(device));
    return make(std::move(where));
}

result<stream> stream::make(shared_context where) {
    KILN_TRY(auto const scope, current_context::enter(*where));
    CUstream handle = nullptr;
    KILN_CHECK(call<&driver_api::stream_create>(where->api(), &handle, static_cast<unsigned>(CU_STREAM_NON_BLOCKING)));
    return stream{std::move(where), handle};
}

stream::stream(shared_context where, CUstream_st* handle) noexcept : context_{std::move(where)}, handle_{handle} {}
stream::stream(stream&& other) noexcept
    : context_{std::move(other.context_)}, handle_{std::exchange(other.handle_, nullptr)} {}
stream& stream::operator=(stream&& other) noexcept {
    if (this != &other) {
        reset();
        context_ = std::move(other.context_);
        handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
}
stream::~stream() { reset(); }

void stream::reset() noexcept {
    if (handle_ != nullptr) cuda::release_in<&driver_api::stream_destroy>(*context_, std::exchange(handle_, nullptr));
    context_.reset();
}

int stream::device() const noexcept { return context_->device(); }

result<void> stream::wait_sync() const {
    KILN_CHECK(cuda::note_sync("stream::wait_sync"));
    KILN_TRY(auto const scope, current_context::enter(*context_));
    return call<&driver_api::stream_synchronize>(context_->api(), handle_);
}

result<bool> stream::idle() const {
    KILN_TRY(auto const scope, current_context::enter(*context_));
    auto const& api = context_->api();
    return finished(*context_, api.stream_query(handle_), &api.stream_query);
}

// device_event

result<device_event> device_event::make(int device, event_timing timing) {
    KILN_TRY(auto where, context::of(device));
    return make(std::move(where), timing);
}

result<device_event> device_event::make(shared_context where, event_timing timing) {
    KILN_TRY(auto const scope, current_context::enter(*where));
    auto const flags = static_cast<unsigned>(timing == event_timing::on ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
    CUevent handle = nullptr;
    KILN_CHECK(call<&driver_api::event_create>(where->api(), &handle, flags));
    return device_event{std::move(where), handle};
}

device_event::device_event(shared_context where, CUevent_st* handle) noexcept
    : context_{std::move(where)}, handle_{handle} {}
device_event::device_event(device_event&& other) noexcept
    : context_{std::move(other.context_)}, handle_{std::exchange(other.handle_, nullptr)} {}
device_event& device_event::operator=(device_event&& other) noexcept {
    if (this != &other) {
        reset();
        context_ = std::move(other.context_);
        handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
}
device_event::~device_event() { reset(); }

void device_event::reset() noexcept {
    if (handle_ != nullptr) cuda::release_in<&driver_api::event_destroy>(*context_, std::exchange(handle_, nullptr));
    context_.reset();
}

int device_event::device() const noexcept { return context_->device(); }

result<void> device_event::record(stream_ref on) {
    KILN_TRY(auto const scope, current_context::enter(*context_));
    return call<&driver_api::event_record>(context_->api(), handle_, on.get());
}

result<void> device_event::hold(stream_ref on) const {
    KILN_TRY(auto const scope, current_context::enter(*context_));
    return call<&driver_api::stream_wait_event>(context_->api(), on.get(), handle_, 0U);
}

result<bool> device_event::reached() const {
    KILN_TRY(auto const scope, current_context::enter(*context_));
    auto const& api = context_->api();
    return finished(*context_, api.event_query(handle_), &api.event_query);
}

result<void> device_event::wait_sync() const {
    KILN_CHECK(cuda::note_sync("device_event::wait_sync"));
    KILN_TRY(auto const scope, current_context::enter(*context_));
    return call<&driver_api::event_synchronize>(context_->api(), handle_);
}

result<double> elapsed_ms(device_event const& from, device_event const& to) {
    KILN_TRY(auto const scope, current_context::enter(*to.context_));
    float out = 0;
    KILN_CHECK(call<&driver_api::event_elapsed_time>(to.context_->api(), &out, from.handle_, to.handle_));
    return double{out};
}

// device_memory

result<device_memory> device_memory::make(std::size_t bytes, int device) {
    KILN_TRY(auto where, context::of(device));
    return make(bytes, std::move(where));
}

result<device_memory> device_memory::make(std::size_t bytes, shared_context where) {
    KILN_TRY(auto const scope, current_context::enter(*where));
    CUdeviceptr address = 0;
    // The driver refuses to allocate nothing; an empty buffer is still a buffer.
    auto allocated = call<&driver_api::mem_alloc>(where->api(), &address, std::max<std::size_t>(bytes, 1));
    if (!allocated) {
        return std::move(allocated).error().within(fmt::format("{} bytes on device {}", bytes, where->device()));
    }
    cuda::note_allocation(bytes, "device_memory::make");
    return device_memory{std::move(where), reinterpret_cast<void*>(address), bytes};
}

device_memory::device_memory(shared_context where, void* address, std::size_t bytes) noexcept
    : context_{std::move(where)}, address_{address}, bytes_{bytes} {}
device_memory::device_memory(device_memory&& other) noexcept
    : context_{std::move(other.context_)},
      address_{std::exchange(other.address_, nullptr)},
      bytes_{std::exchange(other.bytes_, 0)} {}
device_memory& device_memory::operator=(device_memory&& other) noexcept {
    if (this != &other) {
        reset();
        context_ = std::move(other.context_);
        address_ = std::exchange(other.address_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
}
device_memory::~device_memory() { reset(); }

void device_memory::reset() noexcept {
    if (address_ != nullptr)
        cuda::release_in<&driver_api::mem_free>(*context_, number_of(std::exchange(address_, nullptr)));
    context_.reset();
}

int device_memory::device() const noexcept { return context_->device(); }

result<void> device_memory::upload_sync(stream_ref on, std::span<std::byte const> from) {
    if (from.size() > bytes_) return fail(errc::invalid_argument, "upload of {} bytes into {}", from.size(), bytes_);
    KILN_CHECK(cuda::note_transfer({transfer_direction::to_device, from.size(), "device_memory::upload_sync"}));
    KILN_CHECK(cuda::note_sync("device_memory::upload_sync"));
    KILN_TRY(auto const scope, current_context::enter(*context_));
    auto const& api = context_->api();
    KILN_CHECK(call<&driver_api::memcpy_htod_async>(api, number_of(address_), static_cast<void const*>(from.data()),
                                                    from.size(), on.get()));
    return call<&driver_api::stream_synchronize>(api, on.get());
}

result<void> device_memory::download_sync(stream_ref on, std::span<std::byte> to) const {
    if (to.size() > bytes_) return fail(errc::invalid_argument, "download of {} bytes from {}", to.size(), bytes_);
    KILN_CHECK(cuda::note_transfer({transfer_direction::to_host, to.size(), "device_memory::download_sync"}));
    KILN_CHECK(cuda::note_sync("device_memory::download_sync"));
    KILN_TRY(auto const scope, current_context::enter(*context_));
    auto const& api = context_->api();
    KILN_CHECK(call<&driver_api::memcpy_dtoh_async>(api, static_cast<void*>(to.data()), number_of(address_), to.size(),
                                                    on.get()));
    return call<&driver_api::stream_synchronize>(api, on.get());
}

result<void> device_memory::fill(stream_ref on, std::uint8_t value) {
    KILN_TRY(auto const scope, current_context::enter(*context_));
    return call<&driver_api::memset_d8_async>(context_->api(), number_of(address_), value, bytes_, on.get());
}

}  // namespace kiln
