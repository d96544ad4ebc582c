// SPDX-License-Identifier: Apache-2.0
#include "engine/pack.hpp"

#include "base/check.hpp"
#include "engine/pack_verbs.hpp"

#include <kiln/embedded.hpp>

#include <algorithm>
#include <map>

namespace kiln::engine_detail {

namespace {

// Made at the first registration, before main in any order, and never destroyed.
struct registry {
    std::mutex mutex;
    std::vector<pack const*> packs;
};
registry& all_packs() {
    static registry& r = *new registry;
    return r;
}

}  // namespace

pack::pack(pack_facts const& about) : about_{about} {
    for (auto const& f : about.ships) {
        if (f.name.ends_with(".kiln"))
            embedded_bundle{about.name, std::as_bytes(std::span{f.data.data(), f.data.size()})};
    }
    std::lock_guard const lock{all_packs().mutex};
    auto& all = all_packs().packs;
    all.insert(std::ranges::upper_bound(all, about.name, {}, &pack::name), this);
}

std::vector<unit> const& pack::units() const {
    static std::vector<unit> const none;
    return none;
}

spec const* pack::find_spec(std::string_view name) const {
    auto const& all = specs();
    auto const at = std::ranges::find(all, name, &spec::name);
    return at == all.end() ? nullptr : &*at;
}

std::optional<recipe> pack::find(std::string_view name) const {
    if (find_spec(name) == nullptr) return std::nullopt;
    return recipe{std::string{about_.name}, std::string{name}, {}};
}

std::vector<recipe> pack::recipes() const {
    std::vector<recipe> out;
    for (auto const& s : specs()) out.push_back({std::string{about_.name}, s.name, {}});
    return out;
}

unit_pack::contents const& unit_pack::all() const {
    std::call_once(once_, [this] {
        auto made = std::make_unique<contents>();
        std::map<std::string, std::size_t> seen;
        for (auto& n : list_()) {
            n.about.pack = name();
            made->specs.push_back(std::move(n.about));
            auto const [at, fresh] = seen.try_emplace(n.what.name, made->units.size());
            if (fresh) made->units.push_back(std::move(n.what));
            made->unit_of.push_back(at->second);
        }
        all_ = made.release();
    });
    return *all_;
}

unit const* unit_pack::find_unit(std::string_view spec_name) const {
    auto const& here = all();
    auto const* const found = find_spec(spec_name);
    return found == nullptr ? nullptr : &here.units[here.unit_of[static_cast<std::size_t>(found - here.specs.data())]];
}

result<unit const*> unit_pack::unit_named(recipe const& what) const {
    if (auto const* const found = find_unit(what.name)) return found;
    return fail(errc::not_found, "this version of Kiln has no '{}' in its {} pack", what.name, name());
}

result<made_artifact> unit_pack::make(engine& with, recipe const& what, target t, wait_options wait) const {
    KILN_TRY(auto const* const u, unit_named(what));
    return make_unit(with, *u, t, std::move(wait));
}

result<std::shared_ptr<void const>> unit_pack::load(engine& with, recipe const& what, int device,
                                                    wait_options wait) const {
    KILN_TRY(auto const* const u, unit_named(what));
    KILN_TRY(auto ready, with.get_sync(*u, device, std::move(wait)));
    return std::shared_ptr<void const>{std::make_shared<ready_unit>(std::move(ready))};
}

std::vector<pack const*> packs() {
    std::lock_guard const lock{all_packs().mutex};
    return all_packs().packs;
}

pack const* find_pack(std::string_view name) {
    for (auto const* p : packs()) {
        if (p->name() == name) return p;
    }
    return nullptr;
}

result<pack const*> pack_named(std::string_view name) {
    if (auto const* const found = find_pack(name)) return found;
    std::string known;
    for (auto const* p : packs()) known += fmt::format("{}{}", known.empty() ? "" : ", ", p->name());
    return fail(errc::invalid_argument, "there is no pack '{}'; there are: {}; 'kiln list' shows what is in them", name,
                known.empty() ? "none" : known);
}

result<recipe> find_recipe(std::string_view spec) {
    std::string known;
    for (auto const* p : packs()) {
        if (auto found = p->find(spec)) return *std::move(found);
        known += fmt::format("{}{} ({} names)", known.empty() ? "" : ", ", p->name(), p->specs().size());
    }
    return fail(errc::not_found, "no pack has '{}'; 'kiln list' shows every name; packs in this program: {}", spec,
                known.empty()
                    ? "none (libkiln.a brings only what is used: link with kiln::kiln_static of CMake, or with "
                      "-Wl,--undefined=kiln_has_packs)"
                    : known);
}

}  // namespace kiln::engine_detail
