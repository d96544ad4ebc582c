// SPDX-License-Identifier: Apache-2.0
#include "prims/pack.hpp"
#include "prims/tool/prims_tool.hpp"

namespace kiln::prims {

namespace {
prims_tool const the_tool;
}

std::string prims_tool::title(workshop::pack const&) const { return "primitives"; }

// All of them: a template serves many.
std::vector<workshop::recipe> prims_tool::worth_compiling(workshop::pack const& of) const { return of.recipes(); }

// Operators no build of Kiln has seen: linked with a template where one ships for this architecture.
std::vector<workshop::demo_group> prims_tool::unseen() const {
    op const capped{"a + b > 100 ? 100 : a + b"};
    op const larger{"fabs(a) > fabs(b) ? a : b"};
    op const low_half_first{"(a & 0xffff) < (b & 0xffff)"};
    op const thirds{"a % 3 == 0"};
    auto const none = element_type{};
    workshop::demo_group out{"new operators", {}};
    for (auto const& r : {scan_request(scan_form::exclusive, type_of(scalar::i32), capped),
                          reduce_request(type_of(scalar::f64), larger),
                          bounds_request(bound_side::lower, type_of(scalar::u64), low_half_first),
                          select_request(select_form::items, type_of(scalar::i32), &thirds),
                          merge_sort_request(type_of(scalar::u32), none, low_half_first, item_range::ordinary)}) {
        out.recipes.push_back(recipe_of(r));
    }
    return {std::move(out)};
}

}  // namespace kiln::prims
