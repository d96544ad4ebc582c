// SPDX-License-Identifier: Apache-2.0
#include "workshop/pack_tool.hpp"

#include <kiln/runtime/operation.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace kiln::workshop {

// What `kiln calibrate` times: every operation of every pack, as far as the CPU goes.
TEST(trials, every_operation_of_every_pack_has_one_that_runs) {
    scoped_execution_mode const here{execution_mode::cpu};
    EXPECT_GE(engine_detail::packs().size(), 2U);
    for (auto const* p : engine_detail::packs()) {
        std::set<operation const*> timed;
        for (auto const& t : tool_of(*p).trials()) {
            timed.insert(t.what);
            for (std::size_t const n : {256, 512, 1024}) {
                auto const ran = t.run(stream_ref{}, n);
                EXPECT_TRUE(ran) << t.what->name() << ": " << ran.error().message();
            }
        }
        for (auto const* o : p->operations()) {
            bool const has_choice =
                std::ranges::any_of(o->variants(), [](auto const& v) { return v.where == place::gpu; });
            EXPECT_TRUE(timed.contains(o) || !has_choice) << o->name() << " keeps its default";
        }
    }
}

}  // namespace kiln::workshop
