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
    auto const found = kept.find(at, {t.arch.name(), std::string{name_of(t.kind)}, {}});
    if (!found) return std::nullopt;
    auto a = compile::decode_artifact(found.hit->payload);
    if (!a) {
        kept.reject(at);
        return std::nullopt;
    }
    return obtained{.what = std::make_shared<artifact const>(*std::move(a)),
                    .from = provenance_of(found.where),
                    .ms = 0,
                    .note = {}};
}

result<std::optional<obtained>> find_kept(engine& with, unit const& u, int device) {
    KILN_TRY(auto const order, with.internals().order_on(u, device));
    auto found = look_up(*with.internals().store, order.subject);
    if (!found.what) return std::optional<obtained>{};
    return std::optional{obtained{std::move(found.what), found.from, 0, std::move(found.detail)}};
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
