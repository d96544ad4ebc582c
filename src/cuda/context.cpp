// SPDX-License-Identifier: Apache-2.0
#include "cuda/context.hpp"

namespace kiln::cuda {

result<device_info> describe_device(driver_api const& api, int ordinal) {
    CUdevice device = 0;
    KILN_CHECK(call<&driver_api::device_get>(api, &device, ordinal));
    device_info out;
    out.ordinal = ordinal;
    out.driver_version = api.version;
    char name[256] = {};
    KILN_CHECK(call<&driver_api::device_get_name>(api, name, static_cast<int>(sizeof name), device));
    out.name = name;
    struct {
        int& into;
        CUdevice_attribute which;
    } const numbers[] = {
        {out.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
        {out.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
        {out.multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    };
    for (auto const& number : numbers) {
        KILN_CHECK(call<&driver_api::device_get_attribute>(api, &number.into, number.which, device));
    }
    std::size_t bytes = 0;
    KILN_CHECK(call<&driver_api::device_total_mem>(api, &bytes, device));
    out.memory_bytes = bytes;
    if (api.device_get_uuid != nullptr) {
        CUuuid uuid{};
        KILN_CHECK(call<&driver_api::device_get_uuid>(api, &uuid, device));
        for (std::size_t i = 0; i < out.uuid.size(); ++i) out.uuid[i] = static_cast<std::uint8_t>(uuid.bytes[i]);
    }
    return out;
}

result<std::vector<device_info>> list_devices(driver_api const& api) {
    int count = 0;
    KILN_CHECK(call<&driver_api::device_get_count>(api, &count));
    if (count == 0) {
        return fail(errc::no_device,
                    "the driver (CUDA {}) sees no GPU; is one installed and does CUDA_VISIBLE_DEVICES allow it?",
                    api.version_text());
    }
    std::vector<device_info> out;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        KILN_TRY(auto info, describe_device(api, ordinal));
        out.push_back(std::move(info));
    }
    return out;
}

context::context(std::shared_ptr<driver_api const> api, CUdevice device, CUcontext handle, device_info info)
    : api_{std::move(api)}, device_{device}, handle_{handle}, info_{std::move(info)} {}

context::~context() { release<&driver_api::primary_ctx_release>(*api_, device_); }

result<std::shared_ptr<context const>> context::make(std::shared_ptr<driver_api const> api, int ordinal) {
    int count = 0;
    KILN_CHECK(call<&driver_api::device_get_count>(*api, &count));
    if (ordinal < 0 || ordinal >= count) {
        return fail(errc::no_device, "there is no device {}; the driver sees {}", ordinal, count);
    }
    KILN_TRY(auto info, describe_device(*api, ordinal));
    CUdevice device = 0;
    KILN_CHECK(call<&driver_api::device_get>(*api, &device, ordinal));
    CUcontext handle = nullptr;
    KILN_CHECK(call<&driver_api::primary_ctx_retain>(*api, &handle, device));
    return std::shared_ptr<context const>{new context{std::move(api), device, handle, std::move(info)}};
}

result<current_context> current_context::enter(context const& where) {
    KILN_CHECK(call<&driver_api::ctx_push_current>(where.api(), where.get()));
    return current_context{where.api()};
}

current_context::~current_context() {
    CUcontext popped = nullptr;
    if (api_ != nullptr) static_cast<void>(api_->ctx_pop_current(&popped));
}

result<cuuint64_t> capture_of(driver_api const& api, stream_ref on) {
    if (api.stream_get_capture_info == nullptr) return cuuint64_t{0};
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    KILN_CHECK(call<&driver_api::stream_get_capture_info>(api, on.get(), &status, &id));
    return status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : cuuint64_t{0};
}

}  // namespace kiln::cuda
