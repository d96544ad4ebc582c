// SPDX-License-Identifier: Apache-2.0
// From artifacts to kernels on a device.
#include "engine/awaited.hpp"
#include "engine/engine_state.hpp"

#include "compile/cpp_names.hpp"
#include "compile/elf.hpp"
#include "cuda/context.hpp"
#include "cuda/nvtx.hpp"
#include "engine/answering.hpp"
#include "engine/kernel_order.hpp"
#include "engine/pack_verbs.hpp"

#include <algorithm>

namespace kiln {

namespace {

using engine_detail::answering;
using engine_detail::in_order;
using engine_detail::order;

std::vector<std::string> lowered_names(artifact const& a) {
    std::vector<std::string> out;
    for (auto const& k : a.kernels) out.push_back(k.lowered);
    return out;
}

result<std::shared_ptr<cuda::library const>> load_library(artifact const& a, int device) {
    cuda::nvtx_range const range{"load", a.unit, a.target.arch.name()};
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

std::optional<ready_unit> engine::state::already_loaded(order const& what, int device) {
    auto const& subject = what.subject;
    for (auto& unit : loaded.found_by(engine_detail::identity_of(subject), device)) {
        // What a bundle sealed is not known to be sealed here; the lookup that follows knows, and comes to the same key.
        if (compile::first_change(unit->dependencies, subject.roots, compile::absent_headers::are_misses).empty())
            return ready_unit{std::move(unit)};
    }
    return std::nullopt;
}

result<ready_unit> engine::state::load(engine_detail::subject const& what, obtained const& made, int device) {
    auto const& artifact = *made.what;
    auto const identity = engine_detail::identity_of(what);
    engine_detail::loaded_units::turn const turn{loaded, artifact.key, device};
    if (auto unit = loaded.find(artifact.key, device)) {
        loaded.remember(identity, device, unit);
        return ready_unit{std::move(unit)};
    }
    auto const key = base::digest::from_hex(artifact.key);
    auto about = event{.kind = event_kind::loading,
                       .unit = what.name,
                       .target = artifact.target.arch.name(),
                       .key = key ? key->prefix() : 0,
                       .request = identity.prefix()};
    events.emit(about);
    // The line of what was asked for, also where something near serves it.
    engine_detail::known_as const line{what.name, identity};
    auto const asked_for = what.target.arch.name();
    book.loading(line, asked_for);
    base::stopwatch const watch;
    auto library = load_library(artifact, device);
    if (!library) {
        book.failed(line, asked_for, library.error());
        return std::move(library).error().within(fmt::format("unit '{}'", what.name));
    }
    about.kind = event_kind::loaded;
    about.reason = name_of(made.from);
    about.duration_ns = watch.ns();
    about.value = static_cast<std::int64_t>(artifact.image.size());
    events.emit(about);
    book.obtained(line, asked_for, {made.from, artifact.compile_ms, artifact.image.size()});
    book.loaded(line, asked_for, watch.ms());
    // The driver has its own copy of the image; only the small facts are kept here.
    auto ready = std::make_shared<ready_unit::state const>(
        ready_unit::state{artifact.unit, *std::move(library), artifact.kernels, artifact.constants,
                          compile::cubin_variables(artifact.image), artifact.target, made.from, artifact.key,
                          artifact.compile_ms, artifact.dependencies});
    loaded.remember(identity, device, ready);
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

// What a caller asked for and got.
void tell_use(engine::state& s, order const& what, ready_unit const& ready, double waited_ms) {
    if (!s.uses.watched()) return;
    auto const& got = ready.internals();
    s.tell_use(what, {got.target, got.key, got.from, got.compile_ms, waited_ms});
}

}  // namespace

result<ready_unit> engine::state::get_sync(order const& what, int device, wait_options const& how) {
    if (auto ready = already_loaded(what, device)) return *std::move(ready);
    auto made = ask_sync(what, how);
    if (!made && made.error().code() == errc::not_found) made = portable(*this, what, made.error(), how);
    if (!made) return std::move(made).error();
    store::address at{what.subject.id.family, what.subject.id.request, {}};
    if (auto const key = base::digest::from_hex(made->what->key)) at.key = *key;
    return engine_detail::load_or_make_anew(*this, what.subject, {*std::move(made), at, what.licence}, device,
                                            [&] { return ask_sync(what, how); });
}

result<ready_unit> engine::get_sync(unit const& u, int device, wait_options how) {
    auto& s = *state_;
    engine_detail::use_scope const use;
    base::stopwatch const watch;
    KILN_TRY(auto const what, s.order_on(u, device));
    KILN_TRY(auto ready, s.get_sync(what, device, how));
    if (use.outermost()) tell_use(s, what, ready, watch.ms());
    return in_order(std::move(ready), u.kernels);
}

result<ready_unit> engine::load_sync(kiln::artifact const& what, int device) {
    if (what.target.kind == artifact_kind::ltoir)
        return fail(errc::invalid_argument, "'{}' is LTO-IR, which no driver loads: link_sync makes a cubin of it",
                    what.unit);
    auto const key = base::digest::from_hex(what.key);
    auto about = event{.kind = event_kind::loading,
                       .unit = what.unit,
                       .target = what.target.arch.name(),
                       .key = key ? key->prefix() : 0};
    state_->events.emit(about);
    base::stopwatch const watch;
    auto library = load_library(what, device);
    if (!library) return std::move(library).error().within(fmt::format("'{}'", what.unit));
    about.kind = event_kind::loaded;
    about.reason = name_of(provenance::memory);
    about.duration_ns = watch.ns();
    about.value = static_cast<std::int64_t>(what.image.size());
    state_->events.emit(about);
    // Not among the engine's loaded units: nobody has checked that its key is the key of its bytes.
    return ready_unit{std::make_shared<ready_unit::state const>(ready_unit::state{
        what.unit, *std::move(library), what.kernels, what.constants, compile::cubin_variables(what.image), what.target,
        provenance::memory, what.key, what.compile_ms, what.dependencies})};
}

pending<ready_unit> engine::get(unit const& u, int device) {
    auto answer = std::make_shared<pending<ready_unit>::state>();
    auto const awaited = state_->requests->make_awaited();
    answer->blocked = [awaited](blocked_wait const& how) { return awaited->tell(how); };
    engine_detail::use_scope const use;
    // Who records is told first: whoever waits may end the recording as soon as it has its answer.
    auto const give = [this, answer, names = u.kernels, counts = use.outermost(), watch = base::stopwatch{}](
                          order const& what, result<ready_unit> got) {
        if (!got) return answer->finish(std::move(got));
        if (counts) tell_use(*state_, what, *got, watch.ms());
        answer->finish(in_order(*std::move(got), names));
    };
    // Everything, the driver's start included, happens on the loading thread: this call must not block.
    // What is never run answers, too, when it is dropped: whoever comes first is the answer.
    std::shared_ptr<void> const owed{nullptr, [answer](void*) {
                                         base::if_memory_allows([&] {
                                             if (!pending<ready_unit>{answer}.ready())
                                                 answer->finish(fail(errc::cancelled, "the engine is shutting down"));
                                         });
                                     }};
    auto const load = [this, device, give, owed](order const& what) { give(what, state_->get_sync(what, device, {})); };
    auto const ask = [this, u, device, answer, awaited, give, load] {
        auto& s = *state_;
        auto what = s.order_on(u, device);
        if (!what) return answer->finish(std::move(what).error());
        if (auto ready = s.already_loaded(*what, device)) return give(*what, *std::move(ready));
        auto const asked = s.requests->ask(*what, priority::declared);
        awaited->is_for(asked);
        asked.answer.then([this, what = *what, answer, load](result<obtained> const& made) {
            answering(answer, [&] {
                if (!made && made.error().code() != errc::not_found) return answer->finish(error{made.error()});
                // Now it is in memory: this finds it, loads it and handles what the driver may say.
                auto& thread = state_->loading.get();
                if (!thread.post([answer, what, load] { answering(answer, [&] { load(what); }); }))
                    answer->finish(thread.why_not(what.subject.name));
            });
        });
    };
    auto& thread = state_->loading.get();
    if (!thread.post([answer, ask] { answering(answer, ask); })) answer->finish(thread.why_not(u.name));
    return pending<ready_unit>{std::move(answer)};
}

}  // namespace kiln
