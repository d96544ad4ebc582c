// SPDX-License-Identifier: Apache-2.0
#include "workshop/pack_tool.hpp"

#include "engine/engine_state.hpp"
#include "engine/pack_verbs.hpp"

#include <algorithm>
#include <map>

namespace kiln::workshop {

namespace {

// Made at the first registration, before main in any order, and never destroyed.
std::map<std::string_view, pack_tool const*>& all_tools() {
    static auto& all = *new std::map<std::string_view, pack_tool const*>;
    return all;
}

}  // namespace

pack_tool::pack_tool(std::string_view pack) {
    if (!pack.empty()) all_tools()[pack] = this;
}

pack_tool const& tool_of(pack const& of) {
    struct plain final : pack_tool {
        plain() {}
    };
    static plain const default_tool;
    auto const at = all_tools().find(of.name());
    return at == all_tools().end() ? default_tool : *at->second;
}

std::vector<recipe> pack_tool::worth_compiling(pack const& of) const {
    auto all = of.recipes();
    if (all.size() > 3) all.resize(3);
    return all;
}

result<void> pack_tool::make_products(engine& with, pack const& of, product_plan const& plan, product_files& to) const {
    to.set("title", std::string{of.name()});
    to.set("producer", with.internals().producer());
    std::vector<task> tasks;
    for (auto const a : plan.archs) {
        target const t{a, artifact_kind::cubin};
        auto const keep = [&with, &to](result<engine_detail::made_artifact> made) -> result<void> {
            if (!made) return std::move(made).error();
            return to.add(*engine_detail::entry_of(*made, with.internals().producer()));
        };
        for (auto const& u : of.units())
            tasks.emplace_back([&, t, keep] { return keep(engine_detail::make_unit(with, u, t, {})); });
        if (!of.units().empty()) continue;
        for (auto& r : of.recipes())
            tasks.emplace_back([&, t, keep, r = std::move(r)] { return keep(of.make(with, r, t, {})); });
    }
    return run_all(tasks, plan.threads);
}

}  // namespace kiln::workshop
