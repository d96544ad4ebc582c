// SPDX-License-Identifier: Apache-2.0
#include "engine/recipe.hpp"

#include "base/check.hpp"
#include "compile/unit_codec.hpp"

namespace kiln::engine_detail {

namespace {

constexpr std::uint8_t unit_form = 1;

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

}  // namespace kiln::engine_detail
