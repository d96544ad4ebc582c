// SPDX-License-Identifier: Apache-2.0
// From artifacts to kernels on a device.
#include "engine/engine_state.hpp"

#include "compile/cpp_names.hpp"
#include "compile/elf.hpp"
#include "cuda/context.hpp"

#include <algorithm>

namespace kiln {

namespace {

using engine_detail::order;

std::vector<std::string> lowered_names(artifact const& a) {
    std::vector<std::string> out;
    for (auto const& k : a.kernels) out.push_back(k.lowered);
    return out;
}

result<std::shared_ptr<cuda::library const>> load_library(artifact const& a, int device) {
    KILN_TRY(auto const context, cuda::context::of(device));
    return cuda::library::make(context, a.image, lowered_names(a));
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

result<device_variable> ready_unit::variable(std::string_view name) const {
    auto const& known = state_->variables;
    auto const at = std::ranges::find_if(known, [&](auto const& v) { return compile::is_name_of(name, v); });
    // PTX has no table to look in: the driver knows.
    auto const lowered = at != known.end() ? *at : std::string{name.substr(name.starts_with('&') ? 1 : 0)};
    auto found = state_->library->variable(lowered);
    if (found || found.error().code() != errc::not_found) return found;
    std::string there;
    for (auto const& v : known) there += (there.empty() ? "" : ", ") + compile::cpp_name(v);
    return fail(errc::not_found, "unit '{}' has no variable '{}' that can be reached from outside; it has: {}",
                state_->unit, name, there.empty() ? "none" : there);
}

std::optional<ready_unit> engine::state::already_loaded(base::digest const& request, int device) {
    std::lock_guard const lock{loaded_mutex};
    auto const at = loaded.find({request, device});
    if (at == loaded.end()) return std::nullopt;
    if (auto alive = at->second.lock()) return ready_unit{std::move(alive)};
    loaded.erase(at);
    return std::nullopt;
}

namespace {

// One thread loads; the others wait for it.
class load_turn {
public:
    load_turn(engine::state& s, engine::state::loaded_key key) : state_{s}, key_{std::move(key)} {
        std::unique_lock lock{state_.loaded_mutex};
        state_.load_ended.wait(lock, [&] { return !state_.being_loaded.contains(key_); });
        state_.being_loaded.insert(key_);
    }
    ~load_turn() {
        {
            std::lock_guard const lock{state_.loaded_mutex};
            state_.being_loaded.erase(key_);
        }
        state_.load_ended.notify_all();
    }
    load_turn(load_turn const&) = delete;
    load_turn& operator=(load_turn const&) = delete;

private:
    engine::state& state_;
    engine::state::loaded_key key_;
};

}  // namespace

result<ready_unit> engine::state::load(order const& what, obtained const& made, int device) {
    load_turn const turn{*this, {what.subject.id.request, device}};
    if (auto ready = already_loaded(what.subject.id.request, device)) return *ready;
    auto const target_name = made.what->target.arch.name();
    auto about = event{.kind = event_kind::loading,
                       .unit = what.subject.name,
                       .target = target_name,
                       .key = what.subject.id.request.prefix()};
    events.emit(about);
    // The line of what was asked for, also where something near serves it.
    auto const asked_for = what.subject.target.arch.name();
    book.loading(what.subject.name, asked_for);
    base::stopwatch const watch;
    auto library = load_library(*made.what, device);
    if (!library) {
        book.failed(what.subject.name, asked_for, library.error());
        return std::move(library).error().within(fmt::format("unit '{}'", what.subject.name));
    }
    about.kind = event_kind::loaded;
    about.reason = name_of(made.from);
    about.duration_ns = watch.ns();
    about.value = static_cast<std::int64_t>(made.what->image.size());
    events.emit(about);
    book.obtained(what.subject.name, asked_for, {made.from, made.what->compile_ms, made.what->image.size()});
    book.loaded(what.subject.name, asked_for, watch.ms());
    // The driver has its own copy of the image; only the small facts are kept here.
    auto ready = std::make_shared<ready_unit::state const>(
        ready_unit::state{made.what->unit, *std::move(library), made.what->kernels, made.what->constants,
                          compile::cubin_variables(made.what->image), made.what->target, made.from, made.what->key,
                          made.what->compile_ms});
    std::lock_guard const lock{loaded_mutex};
    loaded[{what.subject.id.request, device}] = ready;
    return ready_unit{std::move(ready)};
}

result<order> engine::state::order_on(unit const& u, int device) {
    KILN_TRY(auto const info, kiln::device(device));
    auto const arch = arch::of_device(info.major, info.minor);
    KILN_TRY(auto const t, target::make(arch, artifact_kind::cubin));
    return order_for(u, t, arch);
}

namespace {

// LTO-IR or PTX from a bundle instead of the source: for machines that cannot or need not run NVRTC.
result<obtained> portable(engine::state& s, order const& what, error const& why, wait_options how) {
    auto fell_back =
        event{.kind = event_kind::fell_back, .unit = what.subject.name, .target = what.subject.target.arch.name()};
    if (auto found = engine_detail::look_up_portable(*s.store, what.subject, artifact_kind::ltoir);
        found.what && s.nvjitlink()) {
        fell_back.reason = "link-ltoir";
        s.events.emit(fell_back);
        link_request link{.name = what.subject.name, .target = what.subject.target, .inputs = {found.what}};
        for (auto const& k : found.what->kernels) link.kernels.push_back(k.lowered);
        auto made = s.ask_sync(s.order_for(link), how);
        if (made) return made;
    }
    if (auto found = engine_detail::look_up_portable(*s.store, what.subject, artifact_kind::ptx); found.what) {
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

result<ready_unit> find_and_load(engine& e, unit const& u, order const& what, int device, wait_options const& how) {
    auto& s = e.internals();
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
        s.requests->reject({what.subject.id.family, what.subject.id.request, *key});
    }
    KILN_TRY(auto again, s.ask_sync(what, how));
    return s.load(what, again, device);
}

}  // namespace

result<ready_unit> engine::get_sync(unit const& u, int device, wait_options how) {
    auto& s = *state_;
    engine_detail::use_scope const use;
    base::stopwatch const watch;
    KILN_TRY(auto what, s.order_on(u, device));
    auto ready = s.already_loaded(what.subject.id.request, device);
    if (!ready) {
        KILN_TRY(ready, find_and_load(*this, u, what, device, how));
    }
    if (use.outermost() && s.uses.watched()) {
        auto const& got = ready->internals();
        std::function<std::optional<engine_detail::recipe>()> const recipe = [&] {
            return engine_detail::recipe_of(u);
        };
        s.uses.tell({.name = u.name,
                     .id = what.subject.id.request,
                     .for_target = got.target,
                     .key = got.key,
                     .from = got.from,
                     .compile_ms = got.compile_ms,
                     .waited_ms = watch.ms(),
                     .make_recipe = recipe});
    }
    return *std::move(ready);
}

pending<ready_unit> engine::get(unit const& u, int device) {
    auto answer = std::make_shared<pending<ready_unit>::state>();
    // Everything, the driver's start included, happens on the loading thread: this call must not block.
    auto const gone = [answer] { answer->finish(fail(errc::cancelled, "the engine is shutting down")); };
    bool const posted = state_->loading.post([this, u, device, answer, gone] {
        auto& s = *state_;
        auto what = s.order_on(u, device);
        if (!what) return answer->finish(std::move(what).error());
        if (auto ready = s.already_loaded(what->subject.id.request, device)) return answer->finish(*ready);
        s.requests->ask(*what, priority::declared).then([this, u, device, answer, gone](result<obtained> const& made) {
            if (!made && made.error().code() != errc::not_found) return answer->finish(error{made.error()});
            // Now it is in memory: this finds it, loads it and handles what the driver may say.
            if (!state_->loading.post([this, u, device, answer] { answer->finish(get_sync(u, device)); })) gone();
        });
    });
    if (!posted) gone();
    return pending<ready_unit>{std::move(answer)};
}

}  // namespace kiln
