// SPDX-License-Identifier: Apache-2.0
// One case of a rule: a scene, and what the rule must say of it. The cases lie in files by what the rules are about.
#pragma once

#include "unit/audit/scene.hpp"

#include <functional>

namespace kiln::audit::testing {

// Just below its numbers; something it is not about; something it lets pass and says so.
enum class expected { fires, below, passes, exempt };

struct rule_case {
    std::string rule, name;
    expected what;
    std::function<void(scene&)> make;
    rule_options how = {};
    std::uint64_t times = 0;  // that it must count; 0: any
};

using s = scene&;
using body = std::function<void(scene&, int)>;

inline std::function<void(scene&)> loop(int times, body const& step) {
    return [=](s x) { x.repeat(times, [&](s y, int i) { step(y, i); }); };
}

inline void work(s x, double takes = 50) { x.on("a.py:1").launch("mul", {.takes = takes}); }

std::vector<rule_case> cases_of_the_first(), cases_of_waits(), cases_of_launches();

}  // namespace kiln::audit::testing
