// SPDX-License-Identifier: Apache-2.0
#include "prims/specialisation.hpp"

#include "engine/engine_state.hpp"
#include "prims/pack.hpp"
#include "prims/routes.hpp"

#include <tuple>

namespace kiln::prims {

namespace {

// Loaded by the process's engine and kept for ever: the second handle of a kind costs a lookup.
struct registry {
    using key = std::tuple<kiln::engine const*, base::digest, int, prim_route>;
    std::mutex mutex;
    std::map<key, std::shared_ptr<specialisation const>> known;
};
registry& known_specialisations() {
    static auto* const all = new registry;
    return *all;
}

result<specialisation> build(request const& what, ready_unit loaded, int device) {
    KILN_TRY(auto context, cuda::context::of(device));
    specialisation out{.name = what.name, .loaded = loaded, .info = {}, .kernels = {}, .context = context};
    constant_info const* constants = nullptr;
    for (auto const& c : loaded.constants()) {
        if (c.name == info_name) constants = &c;
    }
    if (constants == nullptr) return fail(errc::corrupt, "{}: its image has no '{}'", what.name, info_name);
    auto info = decode_info(constants->bytes);
    if (!info) return std::move(info).error().within(what.name);
    out.info = *info;
    for (auto const& name : what.kernels) {
        KILN_TRY(auto kernel, loaded.kernel(name));
        out.kernels.push_back(std::move(kernel));
    }
    out.scratch = &scratch_pool::of(context);
    out.value_bytes = what.value.size;
    out.mapped_bytes = what.mapped.size;
    bool const first_is_histogram = what.what == algorithm::radix_sort;
    auto const threads = static_cast<unsigned>(first_is_histogram ? out.info.more[1] : out.info.threads);
    KILN_TRY(auto const per_multiprocessor, out.kernels.front().blocks_per_multiprocessor(threads));
    out.resident_blocks = static_cast<std::size_t>(std::max(1, per_multiprocessor)) *
                          static_cast<std::size_t>(std::max(1, context->info().multiprocessors));
    return out;
}

}  // namespace

namespace {

result<std::shared_ptr<specialisation const>> find_or_make(engine& engine, request const& what,
                                                           prim_options const& how) {
    bool const shared = how.engine == nullptr || &engine == &engine::process();
    registry::key const key{&engine, family_of(what, part::whole), how.device, how.route};
    auto& all = known_specialisations();
    if (shared) {
        std::scoped_lock const lock{all.mutex};
        if (auto const at = all.known.find(key); at != all.known.end()) return at->second;
    }
    KILN_TRY(auto loaded, load_request(engine, what, how));
    KILN_TRY(auto made, build(what, std::move(loaded), how.device));
    auto out = std::make_shared<specialisation const>(std::move(made));
    if (!shared) return out;
    std::scoped_lock const lock{all.mutex};
    return all.known.try_emplace(key, out).first->second;
}

}  // namespace

result<std::shared_ptr<specialisation const>> specialisation::make(request const& what, prim_options const& how) {
    engine_detail::use_scope const use;
    KILN_CHECK(check(what));
    auto& engine = how.engine != nullptr ? *how.engine : engine::process();
    auto made = find_or_make(engine, what, how);
    if (made && use.outermost() && engine.internals().uses.watched()) tell_use(engine, what, (*made)->loaded);
    return made;
}

result<call_scope> call_scope::enter(specialisation const& s) {
    auto const& api = s.context->api();
    CUcontext current = nullptr;
    if (api.ctx_get_current(&current) == CUDA_SUCCESS && current == s.context->get()) return call_scope{std::nullopt};
    if (current == nullptr) {
        KILN_CHECK(cuda::call<&cuda::driver_api::ctx_set_current>(api, s.context->get()));
        return call_scope{std::nullopt};
    }
    KILN_TRY(auto scope, cuda::current_context::enter(*s.context));
    return call_scope{std::optional<cuda::current_context>{std::move(scope)}};
}

result<launch_start> clear_tile_states(untyped_kernel const& init, stream_ref on, void* memory, int tiles) {
    constexpr int threads = 128;
    if (tiles <= 1) return launch_start::after_previous;
    KILN_CHECK(launch(init, on, ceil_div(static_cast<std::size_t>(tiles), threads), threads, {memory, tiles}));
    return launch_start::early;
}

result<void> set_zero(specialisation const& s, stream_ref on, void* at, std::size_t bytes) {
    return cuda::call<&cuda::driver_api::memset_d8_async>(s.context->api(), reinterpret_cast<CUdeviceptr>(at),
                                                          static_cast<unsigned char>(0), bytes, on.get());
}

result<void> copy(specialisation const& s, stream_ref on, void const* from, void* to, std::size_t bytes) {
    if (bytes == 0 || from == to) return {};
    return cuda::call<&cuda::driver_api::memcpy_dtod_async>(s.context->api(), reinterpret_cast<CUdeviceptr>(to),
                                                            reinterpret_cast<CUdeviceptr>(from), bytes, on.get());
}

error too_many(specialisation const& s, std::size_t n) {
    return fail(errc::unsupported,
                "{}: {} items; make the handle with prim_options{{.items = item_range::wide}} for more than 2^32 - 1",
                s.name, n);
}

error too_small(char const* what, std::size_t is, std::size_t needed) {
    return fail(errc::invalid_argument, "{} has room for {}, {} are needed", what, is, needed);
}

handle::handle(std::shared_ptr<specialisation const> what, op const* by) : what_{std::move(what)} {
    if (by != nullptr) state_ = by->state();
}

std::string const& handle::name() const noexcept { return what_->name; }
int handle::device() const noexcept { return what_->context->device(); }
provenance handle::from() const noexcept { return what_->loaded.from(); }
std::size_t handle::tile_items() const noexcept { return what_->info.tile(); }
std::vector<kernel_info> const& handle::kernels() const noexcept { return what_->loaded.kernels(); }

result<void> handle::reserve_bytes(stream_ref on, std::size_t bytes) const {
    KILN_TRY(auto const scope, call_scope::enter(*what_));
    return what_->scratch->reserve(on, bytes);
}

}  // namespace kiln::prims
