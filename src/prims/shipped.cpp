// SPDX-License-Identifier: Apache-2.0
#include "prims/shipped.hpp"

#include "engine/engine_state.hpp"

#include <algorithm>

namespace kiln::prims {

namespace {

// Whose compiler counts: nobody's for what is shipped.
constexpr std::string_view any_toolchain = "shipped";

// Older ones of the device's generation, newest first: known from what is in the bundles.
std::vector<target> elders_of(arch device, base::digest const& family, store::store& where) {
    std::vector<target> out;
    for (auto const& l : where.list(family)) {
        auto const t = target::parse(l.what.about.target);
        if (!t || l.what.about.kind != kiln::name_of(t->kind) || t->arch == device || !can_run(*t, device)) continue;
        if (l.what.about.at == shipped_address(family, *t)) out.push_back(*t);
    }
    std::ranges::sort(out, std::ranges::greater{}, [](target const& t) { return t.arch.number(); });
    return out;
}

std::optional<engine_detail::made_artifact> find_at(engine& with, store::address const& at, target const& t) {
    auto found = engine_detail::find_kept(with, at, t);
    if (!found) return std::nullopt;
    return engine_detail::made_artifact{*std::move(found), at, std::string{licence}};
}

}  // namespace

store::address address_of(base::digest const& family, target const& t, std::string_view toolchain) {
    store::address out{.family = family, .request = {}, .key = {}};
    out.request = base::key_builder{"kiln.prims.request.v1"}
                      .add("family", family)
                      .add("arch", t.arch.name())
                      .add("kind", kiln::name_of(t.kind))
                      .add("toolchain", toolchain)
                      .finish();
    out.key = base::key_builder{"kiln.prims.key.v1"}.add("request", out.request).finish();
    return out;
}

store::address shipped_address(base::digest const& family, target const& t) {
    return address_of(family, t, any_toolchain);
}

store::address template_address(base::digest const& family, target const& t, int cuda_major) {
    return address_of(family, t, fmt::format("{} for CUDA {}", any_toolchain, cuda_major));
}

int linker_major(engine& with) {
    auto const& linker = with.internals().nvjitlink();
    return linker ? compile::major_of(linker->path) : 0;
}

std::shared_ptr<store::entry> entry_at(store::address const& at, artifact a, engine& with) {
    a.key = at.key.hex();
    a.dependencies.clear();
    return engine_detail::entry_of(
        a, {.at = at, .producer = with.internals().producer(), .licence = std::string{licence}});
}

std::optional<engine_detail::made_artifact> find_shipped(engine& with, base::digest const& family, target const& t,
                                                         closeness how) {
    auto const find = [&](target const& of) { return find_at(with, shipped_address(family, of), of); };
    if (auto found = find(t)) return found;
    if (how == closeness::exact) return std::nullopt;
    for (auto const& elder : elders_of(t.arch, family, *with.internals().store)) {
        if (auto found = find(elder)) return found;
    }
    return std::nullopt;
}

std::optional<engine_detail::made_artifact> find_shipped_template(engine& with, request const& what, target const& ir) {
    auto const major = linker_major(with);
    if (major == 0) return std::nullopt;
    return find_at(with, template_address(family_of(what, part::skeleton), ir, major), ir);
}

}  // namespace kiln::prims
