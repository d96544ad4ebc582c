// SPDX-License-Identifier: Apache-2.0
// The tropical units as a pack: by name for demands, for 'kiln warm' and in profiles.
#include "tropical/pack.hpp"

#include "tropical/units.hpp"

#include "embedded/tropical_products.hpp"

#include <kiln/tropical/run.hpp>

namespace kiln::tropical {

namespace {

constexpr operation const* all_operations[] = {&product_operation};

engine_detail::unit_pack const the_pack{
    {.name = "tropical", .ships = embedded::tropical_products(), .operations = all_operations}, named_units};

}  // namespace

}  // namespace kiln::tropical

KILN_PACK(tropical);
