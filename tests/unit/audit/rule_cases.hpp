// SPDX-License-Identifier: Apache-2.0
// One case of a rule: a scene, and what the rule must say of it. The cases lie in files by what the rules are about.
#pragma once

#include "unit/audit/scene.hpp"

#include <functional>

namespace kiln::audit::testing {

using s = scene&;
using body = std::function<void(scene&, int)>;
using making = std::function<void(scene&)>;

// Just below its numbers; something it is not about; something it lets pass and says so.
enum class expected { fires, below, passes, exempt };

struct rule_case {
    std::string rule, name;
    expected what;
    making make;
    rule_options how = {};
    std::uint64_t times = 0;  // that it must count; 0: any
};

inline making loop(int times, body const& step) {
    return [=](s x) { x.repeat(times, [&](s y, int i) { step(y, i); }); };
}

// Steps that many cases are made of; what a case is about stands in its row.
struct named_launch {
    std::string name;
    launch_options how;
};
inline body pair(named_launch const& a, named_launch const& b, double pause = 0) {
    return [=](s y, int) {
        y.on("a.py:1").launch(a.name, a.how).passes(pause).on("a.py:2").launch(b.name, b.how).passes(pause);
    };
}
inline body pair(launch_options const& a, launch_options const& b, double pause = 0) {
    return pair(named_launch{"k", a}, named_launch{"l", b}, pause);
}
// A kernel, then so long on the host that the GPU idles for what is left of it.
inline body host_after(double takes, double host) {
    return [=](s y, int) {
        y.on("a.py:1").launch("k", {.takes = takes}).on("a.py:2").launch("l", {.takes = 1}).passes(host);
    };
}
inline making plain_steps(int times) {
    return [=](s x) { x.repeat(times, [](s y, int) { plain_step(y); }); };
}
// Something, and then what a program does that has nothing wrong.
inline making then_plain(int steps, making const& what) {
    return [=](s x) {
        what(x);
        plain_steps(steps)(x);
    };
}
inline body compiles_before(int steps) {
    return [=](s y, int i) {
        plain_step(y);
        if (i < steps) y.compile(2000);
    };
}

std::vector<rule_case> cases_of_the_first(), cases_of_waits(), cases_of_launches();

}  // namespace kiln::audit::testing
