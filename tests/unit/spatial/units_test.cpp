// SPDX-License-Identifier: Apache-2.0
#include "spatial/units.hpp"

#include "compile/keys.hpp"
#include "spatial/operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace kiln::spatial {

// A first call where they ship looks for no file and no compiler.
TEST(spatial_units, read_no_file) {
    auto const t = target::parse("sm_90").value();
    for (auto const& u : all_units()) EXPECT_TRUE(compile::identify(u, t, {}).value().self_contained) << u.name;
}

TEST(spatial_units, have_every_kernel_once) {
    std::set<std::string> seen;
    for (auto const& u : all_units()) {
        for (auto const& k : u.kernels) {
            EXPECT_TRUE(seen.insert(k).second) << k;
            EXPECT_EQ(unit_with(k).name, u.name);
        }
    }
}

// What an operation launches it declares: each of its kinds of work has a unit, and nobody declares what is not there.
TEST(spatial_units, are_declared_by_operations) {
    std::set<std::string> units, declared;
    for (auto const& u : all_units()) units.insert(u.name);
    auto const* const pack = engine_detail::find_pack("spatial");
    ASSERT_NE(pack, nullptr);
    for (auto const* const o : pack->operations())
        for (auto const& v : o->variants())
            for (auto const& name : needs_of(v, scalar::f64)) {
                bool const is_primitive = engine_detail::find_recipe(name).has_value() && units.count(name) == 0;
                EXPECT_TRUE(is_primitive || units.count(name) == 1) << o->name() << " needs " << name;
                declared.insert(name);
            }
    for (auto const& u : units) EXPECT_EQ(declared.count(u), 1U) << u << " is needed by nothing";
}

}  // namespace kiln::spatial
