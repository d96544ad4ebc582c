// SPDX-License-Identifier: Apache-2.0
//
// How to make something again, on any machine and for any target, as a value that can be written down: a whole unit, or
// what a pack (pack.hpp) needs to make one of its specialisations.
#pragma once

#include "base/digest.hpp"

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

}  // namespace kiln::engine_detail
