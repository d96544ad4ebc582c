// SPDX-License-Identifier: Apache-2.0
// Loaded units, their kernels and variables, launches.
#include "capi/boxes.hpp"

using namespace kiln;
using capi::guarded;
using capi::not_null;

namespace {

kiln_kernel* boxed(untyped_kernel kernel) {
    std::string name{kernel.name()};
    return new kiln_kernel{std::move(kernel), std::move(name)};
}

dim dim_of(std::uint32_t const (&three)[3]) { return {three[0], three[1], three[2]}; }

constexpr std::uint32_t known_flags =
    KILN_LAUNCH_COOPERATIVE | KILN_LAUNCH_EARLY | KILN_LAUNCH_PRIORITY | KILN_LAUNCH_SHARED_CARVEOUT;

result<void> launch(kiln_kernel const& kernel, kiln_stream_handle_t on, kiln_launch const& l, void** arguments) {
    if ((l.flags & ~known_flags) != 0)
        return fail(errc::unsupported, "kiln_launch::flags has {:#x}, which this version of Kiln does not know",
                    l.flags & ~known_flags);
    launch_shape shape{.grid = dim_of(l.grid), .block = dim_of(l.block), .shared_bytes = l.shared_bytes};
    if ((l.flags & KILN_LAUNCH_EARLY) != 0) shape.start = launch_start::early;
    if ((l.flags & KILN_LAUNCH_COOPERATIVE) != 0) shape.kind = grid_kind::cooperative;
    if ((l.cluster[0] | l.cluster[1] | l.cluster[2]) > 1) shape.cluster = dim_of(l.cluster);
    launch_extras extras;
    if ((l.flags & (KILN_LAUNCH_PRIORITY | KILN_LAUNCH_SHARED_CARVEOUT)) != 0 || l.all_begun != nullptr ||
        l.attribute_count > 0) {
        if (l.attribute_count > 0) KILN_CHECK(not_null(l.attributes, "kiln_launch::attributes"));
        if ((l.flags & KILN_LAUNCH_PRIORITY) != 0) extras.priority = l.priority;
        if ((l.flags & KILN_LAUNCH_SHARED_CARVEOUT) != 0) extras.shared_carveout = l.shared_carveout;
        extras.all_begun = static_cast<CUevent_st*>(l.all_begun);
        extras.attributes = l.attributes;
        extras.attribute_count = l.attribute_count;
        shape.more = &extras;
    }
    return kernel.kernel.launch(static_cast<CUstream_st*>(on), shape, arguments);
}

}  // namespace

kiln_error* kiln_get_sync(kiln_engine* engine, kiln_unit const* unit, int32_t device, kiln_wait const* wait,
                          kiln_loaded** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(auto const u, capi::read_unit(unit));
        KILN_TRY(auto const how, capi::read_wait(wait));
        KILN_TRY(auto ready, capi::engine_of(engine).get_sync(u, device, how));
        *out = new kiln_loaded{std::move(ready)};
        return {};
    });
}

kiln_error* kiln_load_artifact_sync(kiln_engine* engine, kiln_artifact const* artifact, int32_t device,
                                    kiln_loaded** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(out, "out"));
        KILN_CHECK(not_null(artifact, "artifact"));
        KILN_TRY(auto ready, capi::engine_of(engine).load_sync(*artifact->got.what, device));
        *out = new kiln_loaded{std::move(ready)};
        return {};
    });
}

kiln_provenance kiln_loaded_from(kiln_loaded const* unit) {
    return unit == nullptr ? KILN_FROM_COMPILER : static_cast<kiln_provenance>(unit->unit.from());
}
size_t kiln_loaded_kernel_count(kiln_loaded const* unit) { return unit == nullptr ? 0 : unit->unit.kernels().size(); }
kiln_error* kiln_loaded_kernel_info(kiln_loaded const* unit, size_t index, kiln_kernel_info* out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(unit, "unit"));
        auto const& all = unit->unit.kernels();
        if (index >= all.size()) return fail(errc::not_found, "kernel {} of {}", index, all.size());
        return capi::describe(all[index], out);
    });
}
void kiln_loaded_free(kiln_loaded* unit) { delete unit; }

kiln_error* kiln_loaded_kernel(kiln_loaded const* unit, char const* name, kiln_kernel** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(unit, "unit"));
        KILN_CHECK(not_null(name, "name"));
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(auto found, unit->unit.kernel(name));
        *out = boxed(std::move(found));
        return {};
    });
}

kiln_error* kiln_kernel_load(void const* image, size_t size, char const* name, int32_t device, kiln_kernel** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(image, "image"));
        KILN_CHECK(not_null(name, "name"));
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(auto loaded, load_kernel({static_cast<std::byte const*>(image), size}, name, device));
        *out = boxed(std::move(loaded));
        return {};
    });
}

kiln_error* kiln_kernel_adopt(void* cu_function, int32_t device, kiln_kernel** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(cu_function, "cu_function"));
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(auto adopted, adopt_kernel(static_cast<CUfunc_st*>(cu_function), device));
        *out = boxed(std::move(adopted));
        return {};
    });
}
void kiln_kernel_free(kiln_kernel* kernel) { delete kernel; }

char const* kiln_kernel_name(kiln_kernel const* kernel) { return kernel == nullptr ? "" : kernel->name.c_str(); }
int32_t kiln_kernel_device(kiln_kernel const* kernel) { return kernel == nullptr ? -1 : kernel->kernel.device(); }
void* kiln_kernel_cu_function(kiln_kernel const* kernel) {
    return kernel == nullptr ? nullptr : kernel->kernel.function();
}
void* kiln_kernel_cu_kernel(kiln_kernel const* kernel) {
    return kernel == nullptr ? nullptr : kernel->kernel.driver_kernel();
}
void* kiln_kernel_cu_library(kiln_kernel const* kernel) {
    return kernel == nullptr ? nullptr : kernel->kernel.driver_library();
}

kiln_error* kiln_kernel_get_resources(kiln_kernel const* kernel, kiln_kernel_resources* out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(kernel, "kernel"));
        auto const& r = kernel->kernel.resources();
        return capi::write_struct(kiln_kernel_resources{sizeof(kiln_kernel_resources), r.registers,
                                                        r.static_shared_bytes, r.local_bytes, r.max_threads},
                                  out, "kiln_kernel_resources");
    });
}
kiln_error* kiln_kernel_allow_shared(kiln_kernel const* kernel, size_t bytes) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(kernel, "kernel"));
        return kernel->kernel.allow_shared(bytes);
    });
}
kiln_error* kiln_kernel_blocks_per_multiprocessor(kiln_kernel const* kernel, uint32_t threads, size_t shared_bytes,
                                                  int32_t* out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(kernel, "kernel"));
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(*out, kernel->kernel.blocks_per_multiprocessor(threads, shared_bytes));
        return {};
    });
}

kiln_error* kiln_kernel_launch(kiln_kernel const* kernel, kiln_stream_handle_t on, kiln_launch const* shape,
                               void** arguments) {
    return guarded([&]() -> result<void> {
        // Of this version, as nearly always: without a copy.
        if (kernel != nullptr && shape != nullptr && shape->size == sizeof *shape)
            return launch(*kernel, on, *shape, arguments);
        KILN_CHECK(not_null(kernel, "kernel"));
        KILN_TRY(auto const known, capi::read_struct(shape, "kiln_launch"));
        return launch(*kernel, on, known, arguments);
    });
}

kiln_error* kiln_loaded_variable(kiln_loaded const* unit, char const* name, kiln_variable** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(unit, "unit"));
        KILN_CHECK(not_null(name, "name"));
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(auto found, unit->unit.variable(name));
        *out = new kiln_variable{std::move(found)};
        return {};
    });
}
void* kiln_variable_address(kiln_variable const* variable) {
    return variable == nullptr ? nullptr : variable->variable.get();
}
size_t kiln_variable_size(kiln_variable const* variable) { return variable == nullptr ? 0 : variable->variable.size(); }
kiln_error* kiln_variable_upload_sync(kiln_variable const* variable, kiln_stream_handle_t on, void const* from,
                                      size_t bytes) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(variable, "variable"));
        if (bytes > 0) KILN_CHECK(not_null(from, "from"));
        return variable->variable.upload_sync(static_cast<CUstream_st*>(on),
                                              std::span{static_cast<std::byte const*>(from), bytes});
    });
}
kiln_error* kiln_variable_download_sync(kiln_variable const* variable, kiln_stream_handle_t on, void* to,
                                        size_t bytes) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(variable, "variable"));
        if (bytes > 0) KILN_CHECK(not_null(to, "to"));
        return variable->variable.download_sync(static_cast<CUstream_st*>(on),
                                                std::span{static_cast<std::byte*>(to), bytes});
    });
}
void kiln_variable_free(kiln_variable* variable) { delete variable; }
