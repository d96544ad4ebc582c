// SPDX-License-Identifier: Apache-2.0
// The tropical units as a pack: by name for demands, for 'kiln warm' and in profiles.
#include "tropical/pack.hpp"

#include "engine/engine_state.hpp"
#include "tropical/products.hpp"
#include "tropical/units.hpp"

#include <kiln/embedded.hpp>

namespace kiln::tropical {

namespace {

using engine_detail::made_artifact;
using engine_detail::recipe;

constexpr std::string_view pack_name = "tropical";

result<unit const*> unit_named(recipe const& what) {
    if (auto const* const found = find_unit(what.name)) return found;
    return fail(errc::not_found, "this version of Kiln has no '{}' in its tropical pack", what.name);
}

class tropical_pack final : public engine_detail::pack {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return pack_name; }
    [[nodiscard]] std::vector<std::string> names() const override {
        std::vector<std::string> out;
        for (auto const& s : specs()) out.push_back(s.name);
        return out;
    }
    [[nodiscard]] std::optional<recipe> find(std::string_view spec) const override {
        if (find_unit(spec) == nullptr) return std::nullopt;
        return recipe{std::string{pack_name}, std::string{spec}, {}};
    }
    [[nodiscard]] result<made_artifact> make(engine& with, recipe const& what, target t,
                                             wait_options wait) const override {
        KILN_TRY(auto const* const u, unit_named(what));
        KILN_TRY(auto const order, with.internals().order_for(*u, t));
        KILN_TRY(auto got, with.artifact_sync(*u, t, std::move(wait)));
        store::address at{order.subject.id.family, order.subject.id.request, {}};
        if (auto const key = base::digest::from_hex(got.what->key)) at.key = *key;
        return made_artifact{std::move(got), at};
    }
    [[nodiscard]] result<std::shared_ptr<void const>> load(engine& with, recipe const& what, int device,
                                                           wait_options wait) const override {
        KILN_TRY(auto const* const u, unit_named(what));
        KILN_TRY(auto ready, with.get_sync(*u, device, std::move(wait)));
        return std::shared_ptr<void const>{std::make_shared<ready_unit>(std::move(ready))};
    }
};

tropical_pack const the_pack;

// What ships is known to every engine: a pointer each, nothing is read.
[[maybe_unused]] bool const shipped = [] {
    for (auto const& f : embedded::tropical_products())
        embedded_bundle{pack_name, std::as_bytes(std::span{f.data.data(), f.data.size()})};
    return true;
}();

}  // namespace

}  // namespace kiln::tropical

extern "C" void kiln_has_tropical() {}
