// SPDX-License-Identifier: Apache-2.0
// A device's primary context, retained while this lives: the one the CUDA runtime uses too.
#pragma once

#include "cuda/driver_api.hpp"

#include <kiln/device.hpp>

namespace kiln::cuda {

class context {
public:
    // Retains the primary context; about 0.1 s when nobody else has. `api` must be initialised.
    [[nodiscard]] static result<std::shared_ptr<context const>> make(std::shared_ptr<driver_api const> api,
                                                                     int ordinal);
    // The process's context of a device: made at the first call and kept until the process ends, because making
    // one anew for every short-lived handle would cost more than all its work.
    [[nodiscard]] static result<std::shared_ptr<context const>> of(int ordinal);

    context(context const&) = delete;
    context& operator=(context const&) = delete;
    ~context();

    [[nodiscard]] driver_api const& api() const noexcept { return *api_; }
    [[nodiscard]] CUcontext get() const noexcept { return handle_; }
    [[nodiscard]] int device() const noexcept { return info_.ordinal; }
    [[nodiscard]] device_info const& info() const noexcept { return info_; }

private:
    context(std::shared_ptr<driver_api const> api, CUdevice device, CUcontext handle, device_info info);

    std::shared_ptr<driver_api const> api_;
    CUdevice device_;
    CUcontext handle_;
    device_info info_;
};

// Makes a context current for a scope, which the context must outlive, and puts back what was current before.
class current_context {
public:
    [[nodiscard]] static result<current_context> enter(context const& where);
    current_context(current_context&& other) noexcept : api_{std::exchange(other.api_, nullptr)} {}
    current_context& operator=(current_context&&) = delete;
    ~current_context();

private:
    explicit current_context(driver_api const& api) noexcept : api_{&api} {}
    driver_api const* api_;
};

// The capture a stream is in; 0: none.
[[nodiscard]] result<cuuint64_t> capture_of(driver_api const& api, stream_ref on);

// What devices() tells, of one table that is initialised.
[[nodiscard]] result<std::vector<device_info>> list_devices(driver_api const& api);
[[nodiscard]] result<device_info> describe_device(driver_api const& api, int ordinal);

// For destructors of things that belong to a context.
template <auto Entry, class Handle>
void release_in(context const& where, Handle handle) noexcept {
    driver_api const& api = where.api();
    if (api.state->exiting.load(std::memory_order_relaxed)) return release<Entry>(api, handle);
    bool const entered = api.ctx_push_current(where.get()) == CUDA_SUCCESS;
    release<Entry>(api, handle);
    CUcontext previous = nullptr;
    if (entered) static_cast<void>(api.ctx_pop_current(&previous));
}

}  // namespace kiln::cuda
