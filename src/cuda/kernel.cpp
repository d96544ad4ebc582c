// SPDX-License-Identifier: Apache-2.0
#include <kiln/kernel.hpp>

#include "base/clock.hpp"
#include "cuda/activity.hpp"
#include "cuda/library.hpp"

#include <kiln/event.hpp>

#include <array>
#include <cstdlib>
#include <limits>

namespace kiln {

namespace cuda {

namespace {

// Above this a kernel needs allow_shared() on every architecture.
constexpr unsigned shared_without_asking = 48U << 10;

constexpr unsigned most_extra_attributes = 8;

bool is_clustered(launch_shape const& shape) { return (shape.cluster.x | shape.cluster.y | shape.cluster.z) != 1; }

std::uint64_t volume(dim const& d) { return std::uint64_t{d.x} * d.y * d.z; }

// What a launch says beyond its shape; each one is cleared only when it is used.
class attribute_list {
public:
    CUlaunchAttributeValue& add(CUlaunchAttributeID id) {
        auto& next = items_[count_++];
        next = {};
        next.id = id;
        return next.value;
    }
    void add(CUlaunchAttribute const& whole) { items_[count_++] = whole; }
    void drop_last() { --count_; }
    [[nodiscard]] CUlaunchAttribute* data() { return items_.data(); }
    [[nodiscard]] unsigned size() const { return count_; }

private:
    std::array<CUlaunchAttribute, 6 + most_extra_attributes> items_;
    unsigned count_ = 0;
};

void add_extras(attribute_list& to, launch_extras const& more) {
    if (more.priority) to.add(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority = *more.priority;
    if (more.shared_carveout)
        to.add(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT).sharedMemCarveout =
            static_cast<unsigned>(*more.shared_carveout);
    if (more.all_begun != nullptr)
        to.add(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT).launchCompletionEvent = {more.all_begun, 0};
    auto const* const others = static_cast<CUlaunchAttribute const*>(more.attributes);
    for (unsigned i = 0; i < more.attribute_count; ++i) to.add(others[i]);
}

bool can_be_added(launch_extras const& more) {
    return more.attribute_count <= most_extra_attributes && (more.attribute_count == 0 || more.attributes != nullptr);
}

std::string spelled(dim const& d) { return fmt::format("{}x{}x{}", d.x, d.y, d.z); }

// Older drivers have the attribute and do not know what to make of it in a stream capture.
constexpr int first_driver_with_early_starts = 12030;

bool can_start_early(context const& where) {
    return where.info().major >= 9 && where.api().version >= first_driver_with_early_starts;
}

}  // namespace

function::function(std::shared_ptr<library const> owner, library::resolved const& kernel) noexcept
    : launch_{owner->where().api().launch_kernel}, handle_{kernel.handle}, owner_{std::move(owner)}, kernel_{kernel} {}

CUresult function::launch_ex(CUstream stream, launch_shape const& shape, void** arguments) const {
    auto const launch = where().api().launch_kernel_ex;
    if (shape.more != nullptr && !can_be_added(*shape.more)) return CUDA_ERROR_INVALID_VALUE;
    bool const early = shape.start == launch_start::early && can_start_early(where());
    attribute_list attributes;
    CUlaunchConfig config{};
    config.gridDimX = shape.grid.x;
    config.gridDimY = shape.grid.y;
    config.gridDimZ = shape.grid.z;
    config.blockDimX = shape.block.x;
    config.blockDimY = shape.block.y;
    config.blockDimZ = shape.block.z;
    config.sharedMemBytes = shape.shared_bytes;
    config.hStream = stream;
    config.attrs = attributes.data();
    if (is_clustered(shape))
        attributes.add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim = {shape.cluster.x, shape.cluster.y,
                                                                            shape.cluster.z};
    if (shape.kind == grid_kind::cooperative) attributes.add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
    if (shape.more != nullptr) add_extras(attributes, *shape.more);
    CUresult status = CUDA_ERROR_NOT_SUPPORTED;
    if (early && launch != nullptr) {
        attributes.add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).programmaticStreamSerializationAllowed =
            1;
        config.numAttrs = attributes.size();
        status = launch(&config, handle_, arguments, nullptr);
        attributes.drop_last();
    }
    // An early start may be had or not; everything else must be.
    if (status != CUDA_ERROR_NOT_SUPPORTED) return status;
    if (attributes.size() == 0) return launch_plain(stream, shape, arguments);
    config.numAttrs = attributes.size();
    return launch == nullptr ? status : launch(&config, handle_, arguments, nullptr);
}

std::string function::advice(CUresult status, launch_shape const& shape) const {
    auto const& has = resources();
    if (status == CUDA_ERROR_NOT_SUPPORTED && is_clustered(shape))
        return "; clusters of blocks need sm_90 or newer and a driver for CUDA 11.8 or newer";
    if (status == CUDA_ERROR_NOT_SUPPORTED) return "; the device or the driver does not have what was asked for";
    if (status == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE) {
        // A launch takes its context from the stream; this question needs one that is current.
        auto const scope = current_context::enter(where());
        int per_multiprocessor = 0;
        auto const asked = where().api().occupancy_max_active_blocks(
            &per_multiprocessor, handle_, static_cast<int>(volume(shape.block)), shape.shared_bytes);
        if (asked != CUDA_SUCCESS) return {};
        return fmt::format("; {} blocks of this size run at once, not {}",
                           per_multiprocessor * where().info().multiprocessors, volume(shape.grid));
    }
    if (shape.more != nullptr && shape.more->attribute_count > most_extra_attributes)
        return fmt::format("; at most {} attributes of the caller's own", most_extra_attributes);
    if (shape.more != nullptr && !can_be_added(*shape.more))
        return fmt::format("; {} attributes were promised, and there is no list of them", shape.more->attribute_count);
    if (status != CUDA_ERROR_INVALID_VALUE && status != CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES) return {};
    if (has.max_threads > 0 && volume(shape.block) > static_cast<std::uint64_t>(has.max_threads)) {
        return fmt::format("; a block of this kernel can have {} threads, not {}", has.max_threads,
                           volume(shape.block));
    }
    if (shape.shared_bytes + static_cast<unsigned>(has.static_shared_bytes) > shared_without_asking) {
        return fmt::format("; call allow_shared({}) once before", shape.shared_bytes);
    }
    return {};
}

result<void> function::recover(CUresult status, CUstream stream, launch_shape const& shape, void** arguments) const {
    auto const& api = where().api();
    auto const again = [&] {
        // Without the early start, which may be had or not.
        auto plainer = shape;
        plainer.start = launch_start::after_previous;
        return is_plain(plainer) ? launch_plain(stream, shape, arguments) : launch_ex(stream, plainer, arguments);
    };
    CUcontext current = nullptr;
    bool const known = api.ctx_get_current(&current) == CUDA_SUCCESS;
    bool const about_context = status == CUDA_ERROR_INVALID_CONTEXT || status == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
                               status == CUDA_ERROR_INVALID_HANDLE;
    if (known && about_context && current == nullptr) {
        // Left current, so that this thread pays once.
        if (api.ctx_set_current(where().get()) == CUDA_SUCCESS) status = again();
    } else if (known && about_context && current != where().get()) {
        // Another device's context belongs to the caller: it is put back.
        if (auto const scope = current_context::enter(where())) status = again();
    }
    if (status == CUDA_SUCCESS) return {};
    return driver_error(api, &api.launch_kernel, status)
        .within(fmt::format("launch of '{}' on device {} (grid {}, block {}, {} bytes shared{})", name(),
                            where().device(), spelled(shape.grid), spelled(shape.block), shape.shared_bytes,
                            advice(status, shape)));
}

}  // namespace cuda

using cuda::call;
using cuda::driver_api;

untyped_kernel::untyped_kernel(std::shared_ptr<cuda::function const> function) noexcept
    : function_{std::move(function)} {}

std::string_view untyped_kernel::name() const noexcept { return function_->name(); }
int untyped_kernel::device() const noexcept { return function_->where().device(); }
kernel_resources const& untyped_kernel::resources() const noexcept { return function_->resources(); }

CUfunc_st* untyped_kernel::function() const noexcept { return function_->get(); }
CUkern_st* untyped_kernel::driver_kernel() const noexcept { return function_->kernel(); }
CUlib_st* untyped_kernel::driver_library() const noexcept { return function_->owner().get(); }

int device_variable::device() const noexcept { return owner_->device(); }

result<void> device_variable::upload_sync(stream_ref on, std::span<std::byte const> from) const {
    if (from.size() > bytes_)
        return fail(errc::invalid_argument, "{} bytes for a variable that has {}", from.size(), bytes_);
    KILN_CHECK(cuda::note_transfer({transfer_direction::to_device, from.size(), "device_variable::upload_sync"}));
    KILN_CHECK(cuda::note_sync("device_variable::upload_sync"));
    KILN_TRY(auto const scope, cuda::current_context::enter(owner_->where()));
    auto const& api = owner_->where().api();
    KILN_CHECK(call<&driver_api::memcpy_htod_async>(api, reinterpret_cast<CUdeviceptr>(address_),
                                                    static_cast<void const*>(from.data()), from.size(), on.get()));
    return call<&driver_api::stream_synchronize>(api, on.get());
}

result<void> device_variable::download_sync(stream_ref on, std::span<std::byte> to) const {
    if (to.size() > bytes_)
        return fail(errc::invalid_argument, "{} bytes of a variable that has {}", to.size(), bytes_);
    KILN_CHECK(cuda::note_transfer({transfer_direction::to_host, to.size(), "device_variable::download_sync"}));
    KILN_CHECK(cuda::note_sync("device_variable::download_sync"));
    KILN_TRY(auto const scope, cuda::current_context::enter(owner_->where()));
    auto const& api = owner_->where().api();
    KILN_CHECK(call<&driver_api::memcpy_dtoh_async>(api, static_cast<void*>(to.data()),
                                                    reinterpret_cast<CUdeviceptr>(address_), to.size(), on.get()));
    return call<&driver_api::stream_synchronize>(api, on.get());
}

result<untyped_kernel> adopt_kernel(CUfunc_st* function, int device, std::shared_ptr<void const> keep) {
    KILN_TRY(auto const where, cuda::context::of(device));
    KILN_TRY(auto const owner, cuda::library::adopt(where, function, std::move(keep)));
    KILN_TRY(auto only, owner->find(owner->names().front()));
    return untyped_kernel{std::move(only)};
}

namespace {

// Read once: a launch that nobody traces costs one load of a constant more.
bool const traced = [] {
    auto const* const text = ::secure_getenv("KILN_TRACE_LAUNCHES");
    return text != nullptr && *text == '1';
}();

}  // namespace

result<void> untyped_kernel::launch(stream_ref on, launch_shape const& shape, void** arguments) const {
    if (traced) [[unlikely]] {
        base::stopwatch const watch;
        auto done = function_->launch(on.get(), shape, arguments);
        event_log::process().emit({.kind = event_kind::launched, .unit = name(), .duration_ns = watch.ns()});
        return done;
    }
    return function_->launch(on.get(), shape, arguments);
}

result<void> untyped_kernel::allow_shared(std::size_t bytes) const {
    auto const within = [&](error&& why) {
        return std::move(why).within(fmt::format("'{}': {} bytes of shared memory", name(), bytes));
    };
    if (bytes > std::size_t{std::numeric_limits<int>::max()})
        return within(fail(errc::invalid_argument, "no device has as much"));
    KILN_TRY(auto const scope, cuda::current_context::enter(function_->where()));
    auto done =
        call<&driver_api::func_set_attribute>(function_->where().api(), function_->get(),
                                              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes));
    if (!done) return within(std::move(done).error());
    return {};
}

result<int> untyped_kernel::blocks_per_multiprocessor(unsigned threads, std::size_t shared_bytes) const {
    KILN_TRY(auto const scope, cuda::current_context::enter(function_->where()));
    int out = 0;
    KILN_CHECK(call<&driver_api::occupancy_max_active_blocks>(function_->where().api(), &out, function_->get(),
                                                              static_cast<int>(threads), shared_bytes));
    return out;
}

result<std::optional<std::vector<std::size_t>>> untyped_kernel::parameters() const {
    auto const& api = function_->where().api();
    if (api.func_get_param_info == nullptr) return std::optional<std::vector<std::size_t>>{};
    KILN_TRY(auto const scope, cuda::current_context::enter(function_->where()));
    std::vector<std::size_t> out;
    std::size_t offset = 0;
    std::size_t size = 0;
    while (api.func_get_param_info(function_->get(), out.size(), &offset, &size) == CUDA_SUCCESS) out.push_back(size);
    return std::optional{std::move(out)};
}

result<void> untyped_kernel::check_parameters(std::span<std::size_t const> sizes) const {
    KILN_TRY(auto const known, parameters());
    if (!known) return {};
    if (known->size() != sizes.size())
        return fail(errc::invalid_argument, "kernel '{}' has {} parameters, the signature {}", name(), known->size(),
                    sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if ((*known)[i] != sizes[i]) {
            return fail(errc::invalid_argument, "kernel '{}': parameter {} has {} bytes, in the signature {}", name(),
                        i + 1, (*known)[i], sizes[i]);
        }
    }
    return {};
}

result<untyped_kernel> load_kernel(std::span<std::byte const> image, std::string const& name, int device) {
    KILN_TRY(auto const where, cuda::context::of(device));
    std::string const names[] = {name};
    base::stopwatch const watch;
    KILN_TRY(auto const loaded, cuda::library::make(where, image, names));
    event_log::process().emit({.kind = event_kind::loaded,
                               .unit = name,
                               .target = where->info().target(),
                               .duration_ns = watch.ns(),
                               .value = static_cast<std::int64_t>(image.size())});
    KILN_TRY(auto function, loaded->find(name));
    return untyped_kernel{std::move(function)};
}

}  // namespace kiln
