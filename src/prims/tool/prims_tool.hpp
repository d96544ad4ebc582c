// SPDX-License-Identifier: Apache-2.0
// The primitives for Kiln's own programs: trials.cpp, demo.cpp and products.cpp, no part of libkiln.
#pragma once

#include "workshop/pack_tool.hpp"

namespace kiln::prims {

class prims_tool final : public workshop::pack_tool {
public:
    prims_tool() : pack_tool{"prims"} {}
    [[nodiscard]] std::vector<workshop::trial> trials() const override;
    [[nodiscard]] std::string title(workshop::pack const& of) const override;
    [[nodiscard]] std::vector<workshop::recipe> worth_compiling(workshop::pack const& of) const override;
    [[nodiscard]] std::vector<workshop::demo_group> unseen() const override;
    [[nodiscard]] result<void> make_products(engine& with, workshop::pack const& of, workshop::product_plan const& plan,
                                             workshop::product_files& to) const override;
};

}  // namespace kiln::prims
