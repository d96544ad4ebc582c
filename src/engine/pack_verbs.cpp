// SPDX-License-Identifier: Apache-2.0
#include "engine/pack_verbs.hpp"

#include "compile/job.hpp"
#include "engine/engine_state.hpp"
#include "engine/identity.hpp"

namespace kiln::engine_detail {

namespace {

bool is_broken_image(error const& e) {
    return e.code() == errc::corrupt || e.code() == errc::unsupported || e.code() == errc::compile_failed ||
           e.code() == errc::not_found;
}

}  // namespace

std::shared_ptr<store::entry> entry_of(artifact const& a, entry_facts about) {
    auto out = std::make_shared<store::entry>();
    out->about = {.at = about.at,
                  .name = a.unit,
                  .target = a.target.arch.name(),
                  .kind = std::string{name_of(a.target.kind)},
                  .toolchain = a.toolchain,
                  .producer = std::move(about.producer),
                  .licence = std::move(about.licence)};
    out->payload = compile::encode(a);
    return out;
}

std::shared_ptr<store::entry> entry_of(made_artifact const& made, std::string producer) {
    return entry_of(*made.got.what, {.at = made.at, .producer = std::move(producer), .licence = made.licence});
}

result<made_artifact> make_unit(engine& with, unit const& u, target t, wait_options wait) {
    KILN_TRY(auto got, with.artifact_sync(u, t, std::move(wait)));
    // By the compiler that made it, which may be another than this machine's.
    KILN_TRY(auto const id, compile::identify(u, got.what->target, got.what->toolchain));
    store::address at{id.family, id.request, {}};
    if (auto const key = base::digest::from_hex(got.what->key)) at.key = *key;
    return made_artifact{std::move(got), at, u.licence};
}

std::optional<obtained> find_kept(engine& with, store::address const& at, target const& t) {
    auto& kept = *with.internals().store;
    // A look, not a request: a miss is told by whoever then has to make it.
    auto const found = kept.peek(at, {t.arch.name(), std::string{name_of(t.kind)}, {}});
    if (!found) return std::nullopt;
    auto a = compile::decode_artifact(found.hit->payload);
    if (!a) {
        kept.reject(at);
        return std::nullopt;
    }
    kept.used(found);
    return obtained{.what = std::make_shared<artifact const>(*std::move(a)),
                    .from = provenance_of(found.where),
                    .ms = 0,
                    .note = {}};
}

result<std::optional<obtained>> find_kept(engine& with, unit const& u, int device) {
    KILN_TRY(auto const order, with.internals().order_on(u, device));
    if (order.goes_around_the_cache()) return std::optional<obtained>{};
    auto found = look_up(*with.internals().store, order.subject);
    if (!found.what) return std::optional<obtained>{};
    return std::optional{obtained{std::move(found.what), found.from, 0, std::move(found.detail)}};
}

result<std::optional<ready_unit>> load_shipped(engine& with, unit const& u, int device, wait_options const& wait) {
    auto& s = with.internals();
    if (s.uses.watched()) return std::optional<ready_unit>{};  // the ordinary way tells it to those who record
    KILN_TRY(auto const info, kiln::device(device));
    KILN_TRY(auto const t, target::make(arch::of_device(info.major, info.minor), artifact_kind::cubin));
    subject what{.name = u.name, .target = t, .id = {}, .toolchain = {}, .roots = {}, .device = t.arch};
    KILN_TRY(what.id, compile::identify(u, t, {}));
    if (!what.id.self_contained) return std::optional<ready_unit>{};  // its headers may be here, and others
    auto found = look_up_shipped(*s.store, what);
    if (!found.what) return std::optional<ready_unit>{};
    // From here on it is what its own compiler made.
    what.toolchain = found.what->toolchain;
    what.id = compile::made_by(what.id, t, what.toolchain);
    made_artifact const made{{std::move(found.what), found.from, 0, std::move(found.detail)}, found.at, u.licence};
    auto const make_anew = [&]() -> result<obtained> {
        KILN_TRY(auto const order, s.order_on(u, device));
        return s.ask_sync(order, wait);
    };
    KILN_TRY(auto ready, load_or_make_anew(s, what, made, device, make_anew));
    return std::optional{std::move(ready)};
}

result<ready_unit> shipped_or_made(engine& with, unit const& u, int device, wait_options const& wait) {
    KILN_TRY(auto shipped, load_shipped(with, u, device, wait));
    if (shipped) return *std::move(shipped);
    return with.get_sync(u, device, wait);
}

result<ready_unit> load_or_make_anew(engine::state& with, subject const& what, made_artifact const& found, int device,
                                     std::function<result<obtained>()> const& make_anew) {
    auto ready = with.load(what, found.got, device);
    if (ready || !make_anew || found.got.from == provenance::compiled || !is_broken_image(ready.error())) return ready;
    with.events.emit({.kind = event_kind::rejected,
                      .unit = what.name,
                      .target = found.got.what->target.arch.name(),
                      .reason = "driver",
                      .detail = ready.error().message(),
                      .key = found.at.key.prefix(),
                      .request = identity_of(what).prefix()});
    with.store->reject(found.at);
    KILN_TRY(auto const again, make_anew());
    return with.load(what, again, device);
}

}  // namespace kiln::engine_detail
