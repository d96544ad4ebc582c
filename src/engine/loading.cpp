// SPDX-License-Identifier: Apache-2.0
// From artifacts to kernels on a device.
#include "engine/engine_state.hpp"

#include "cuda/context.hpp"

namespace kiln {

namespace {

using engine_detail::order;
using engine_detail::urgency;

std::vector<std::string> lowered_names(artifact const& a) {
    std::vector<std::string> out;
    for (auto const& k : a.kernels) out.push_back(k.lowered);
    return out;
}

}  // namespace

int ready_unit::device() const noexcept { return state_->library->device(); }
std::vector<kernel_info> const& ready_unit::kernels() const noexcept { return state_->kernels; }
std::vector<constant_info> const& ready_unit::constants() const noexcept { return state_->constants; }
kiln::target ready_unit::target() const noexcept { return state_->target; }
provenance ready_unit::from() const noexcept { return state_->from; }

result<untyped_kernel> ready_unit::kernel(std::string_view name) const {
    for (auto const& k : state_->kernels) {
        if (k.name != name && k.lowered != name) continue;
        KILN_TRY(auto function, state_->library->find(k.lowered));
        return untyped_kernel{std::move(function)};
    }
    std::string known;
    for (auto const& k : state_->kernels) known += (known.empty() ? "" : ", ") + k.name;
    return fail(errc::not_found, "unit '{}' has no kernel '{}'; it has: {}", state_->unit, name, known);
}

result<ready_unit> engine::state::load(order const& what, obtained const& made, int device) {
    base::stopwatch const watch;
    KILN_TRY(auto const context, cuda::context::of(device));
    auto const names = lowered_names(*made.what);
    auto library = cuda::library::make(context, made.what->image, names);
    if (!library) return std::move(library).error().within(fmt::format("unit '{}'", what.what.name));
    events.emit({.kind = event_kind::loaded,
                 .unit = what.what.name,
                 .target = made.what->target.arch.name(),
                 .reason = name_of(made.from),
                 .key = what.what.id.request.prefix(),
                 .duration_ns = watch.ns(),
                 .value = static_cast<std::int64_t>(made.what->image.size())});
    // The driver has its own copy of the image; only the small facts are kept here.
    auto ready = std::make_shared<ready_unit::state const>(ready_unit::state{
        made.what->unit, *std::move(library), made.what->kernels, made.what->constants, made.what->target, made.from});
    std::lock_guard const lock{loaded_mutex};
    loaded[{what.what.id.request, device}] = ready;
    return ready_unit{std::move(ready)};
}

namespace {

result<order> order_for_device(engine::state& s, unit const& u, int device) {
    KILN_TRY(auto const info, kiln::device(device));
    auto const arch = arch::of_device(info.major, info.minor);
    KILN_TRY(auto const t, target::make(arch, artifact_kind::cubin));
    return s.order_for(u, t, arch);
}

std::optional<ready_unit> already_loaded(engine::state& s, order const& what, int device) {
    std::lock_guard const lock{s.loaded_mutex};
    auto const at = s.loaded.find({what.what.id.request, device});
    if (at == s.loaded.end()) return std::nullopt;
    if (auto alive = at->second.lock()) return ready_unit{std::move(alive)};
    s.loaded.erase(at);
    return std::nullopt;
}

// LTO-IR or PTX from a bundle instead of the source: for machines that cannot or need not run NVRTC.
result<obtained> portable(engine::state& s, order const& what, error const& why, wait_options how) {
    auto fell_back =
        event{.kind = event_kind::fell_back, .unit = what.what.name, .target = what.what.target.arch.name()};
    if (auto found = engine_detail::look_up_portable(*s.store, what.what, artifact_kind::ltoir);
        found.what && s.nvjitlink()) {
        fell_back.reason = "link-ltoir";
        s.events.emit(fell_back);
        link_request link{.name = what.what.name, .target = what.what.target, .inputs = {found.what}};
        for (auto const& k : found.what->kernels) link.kernels.push_back(k.lowered);
        auto made = s.ask_sync(s.order_for(link), how);
        if (made) return made;
    }
    if (auto found = engine_detail::look_up_portable(*s.store, what.what, artifact_kind::ptx); found.what) {
        fell_back.reason = "driver-ptx";
        fell_back.detail = why.message();
        s.events.emit(fell_back);
        return obtained{found.what, found.from, 0, "PTX, compiled by the driver"};
    }
    return error{why};
}

bool is_broken_image(error const& e) {
    return e.code() == errc::corrupt || e.code() == errc::unsupported || e.code() == errc::compile_failed ||
           e.code() == errc::not_found;
}

}  // namespace

result<ready_unit> engine::get_sync(unit const& u, int device, wait_options how) {
    auto& s = *state_;
    KILN_TRY(auto what, order_for_device(s, u, device));
    if (auto ready = already_loaded(s, what, device)) return *ready;
    auto made = s.ask_sync(what, how);
    if (!made && made.error().code() == errc::not_found) made = portable(s, what, made.error(), how);
    if (!made) return std::move(made).error();
    auto ready = s.load(what, *made, device);
    if (ready || made->from == provenance::compiled || !is_broken_image(ready.error())) return ready;

    // It passed every check and the driver still refuses it: forget it everywhere, make it anew, once.
    s.events.emit({.kind = event_kind::rejected,
                   .unit = u.name,
                   .target = made->what->target.arch.name(),
                   .reason = "driver",
                   .detail = ready.error().message()});
    if (auto const key = base::digest::from_hex(made->what->key)) {
        s.requests->reject({what.what.id.family, what.what.id.request, *key});
    }
    KILN_TRY(auto again, s.ask_sync(what, how));
    return s.load(what, again, device);
}

pending<ready_unit> engine::get(unit const& u, int device) {
    auto answer = std::make_shared<pending<ready_unit>::state>();
    // Everything, the driver's start included, happens on the loading thread: this call must not block.
    state_->loading.post([this, u, device, answer] {
        auto& s = *state_;
        auto what = order_for_device(s, u, device);
        if (!what) return answer->finish(std::move(what).error());
        if (auto ready = already_loaded(s, *what, device)) return answer->finish(*ready);
        s.requests->ask(*what, urgency::background).then([this, u, device, answer](result<obtained> const& made) {
            if (!made && made.error().code() != errc::not_found) return answer->finish(error{made.error()});
            // Now it is in memory: this finds it, loads it and handles what the driver may say.
            state_->loading.post([this, u, device, answer] { answer->finish(get_sync(u, device)); });
        });
    });
    return pending<ready_unit>{std::move(answer)};
}

}  // namespace kiln
