// SPDX-License-Identifier: Apache-2.0
#include "engine/recipe.hpp"

#include "base/check.hpp"
#include "compile/unit_codec.hpp"

namespace kiln::engine_detail {

namespace {

constexpr std::uint8_t unit_form = 1;
constexpr std::uint8_t carrying_form = 2;  // the same, and the headers it carries

}  // namespace

base::digest recipe::id() const {
    return base::key_builder{"kiln.recipe.v1"}.add("kind", kind).add("name", name).add("body", body).finish();
}

recipe recipe_of(unit const& u) {
    base::byte_writer w;
    w.put_u8(u.carried.empty() ? unit_form : carrying_form);
    compile::put_unit(w, u);
    if (!u.carried.empty()) compile::put_carried(w, u);
    return {"unit", u.name, std::move(w).take()};
}

result<unit> unit_of(recipe const& r) {
    base::byte_reader in{r.body};
    auto const form = in.get_u8();
    if (form != unit_form && form != carrying_form)
        return fail(errc::unsupported, "recipe of '{}': form {} is not known to this version of Kiln", r.name, form);
    auto u = compile::get_unit(in);
    if (form == carrying_form) compile::get_carried(in, u);
    if (!in.done()) return fail(errc::corrupt, "recipe of '{}': damaged", r.name);
    return u;
}

}  // namespace kiln::engine_detail
