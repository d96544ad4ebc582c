// SPDX-License-Identifier: Apache-2.0
#include "engine/recipe.hpp"

#include "base/check.hpp"
#include "compile/unit_codec.hpp"

#include <mutex>

namespace kiln::engine_detail {

namespace {

constexpr std::uint8_t unit_form = 1;

// Made at the first registration, before main in any order, and never destroyed.
struct registry {
    std::mutex mutex;
    std::vector<pack const*> packs;
};
registry& all() {
    static registry& r = *new registry;
    return r;
}

}  // namespace

base::digest recipe::id() const {
    return base::key_builder{"kiln.recipe.v1"}.add("kind", kind).add("name", name).add("body", body).finish();
}

recipe recipe_of(unit const& u) {
    base::byte_writer w;
    w.put_u8(unit_form);
    compile::put_unit(w, u);
    return {"unit", u.name, std::move(w).take()};
}

result<unit> unit_of(recipe const& r) {
    base::byte_reader in{r.body};
    if (auto const form = in.get_u8(); form != unit_form)
        return fail(errc::unsupported, "recipe of '{}': form {} is not known to this version of Kiln", r.name, form);
    auto u = compile::get_unit(in);
    if (!in.done()) return fail(errc::corrupt, "recipe of '{}': damaged", r.name);
    return u;
}

pack::pack() {
    std::lock_guard const lock{all().mutex};
    all().packs.push_back(this);
}

std::vector<pack const*> packs() {
    std::lock_guard const lock{all().mutex};
    return all().packs;
}

pack const* find_pack(std::string_view name) {
    for (auto const* p : packs()) {
        if (p->name() == name) return p;
    }
    return nullptr;
}

result<recipe> find_recipe(std::string_view spec) {
    std::string known;
    for (auto const* p : packs()) {
        if (auto found = p->find(spec)) return *std::move(found);
        known += fmt::format("{}{} ({} names)", known.empty() ? "" : ", ", p->name(), p->names().size());
    }
    return fail(errc::not_found, "no pack has '{}'; 'kiln list' shows every name; packs in this program: {}", spec,
                known.empty()
                    ? "none (libkiln.a brings only what is used: link with kiln::kiln_static of CMake, or with "
                      "-Wl,--undefined=kiln_has_prims,--undefined=kiln_has_tropical)"
                    : known);
}

}  // namespace kiln::engine_detail
