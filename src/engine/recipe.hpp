// SPDX-License-Identifier: Apache-2.0
//
// How to make something again, on any machine and for any target, as a value that can be written down: a whole unit, or
// what a pack needs to make one of its specialisations. And the packs themselves: static objects that know how.
#pragma once

#include "base/digest.hpp"
#include "store/tier.hpp"

#include <kiln/engine.hpp>

namespace kiln::engine_detail {

struct recipe {
    std::string kind;  // "unit", or the name of a pack
    std::string name;  // for people, and for packs the name in their list
    base::bytes body;  // may be empty where the name says it all

    [[nodiscard]] base::digest id() const;
    bool operator==(recipe const&) const = default;
};

[[nodiscard]] recipe recipe_of(unit const& u);
// errc::corrupt, or errc::unsupported for a newer form.
[[nodiscard]] result<unit> unit_of(recipe const& r);

struct made_artifact {
    obtained got;
    store::address at;  // where it is kept: for bundles
};

class pack {
public:
    // Registers; starts nothing. Packs are static and never die before the engines.
    pack();
    pack(pack const&) = delete;
    pack& operator=(pack const&) = delete;

    [[nodiscard]] virtual std::string_view name() const noexcept = 0;
    // Names a demand may use, in a stable order.
    [[nodiscard]] virtual std::vector<std::string> names() const = 0;
    [[nodiscard]] virtual std::optional<recipe> find(std::string_view spec) const = 0;
    // errc::not_found or errc::corrupt for a recipe of another time.
    [[nodiscard]] virtual result<made_artifact> make(engine& with, recipe const& what, target t,
                                                     wait_options wait) const = 0;
    // Loaded, kernels resolved; what is returned keeps it so.
    [[nodiscard]] virtual result<std::shared_ptr<void const>> load(engine& with, recipe const& what, int device,
                                                                   wait_options wait) const = 0;

protected:
    ~pack() = default;
};

[[nodiscard]] std::vector<pack const*> packs();
[[nodiscard]] pack const* find_pack(std::string_view name);
// Of any pack; errc::not_found with what there is.
[[nodiscard]] result<recipe> find_recipe(std::string_view spec);

}  // namespace kiln::engine_detail
