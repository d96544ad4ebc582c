// SPDX-License-Identifier: Apache-2.0
#include <kiln/catalogue.hpp>

#include "base/check.hpp"
#include "engine/engine_state.hpp"
#include "engine/pack.hpp"

#include <algorithm>

namespace kiln {

std::span<spec const> catalogue() {
    static std::vector<spec> const all = [] {
        std::vector<spec> out;
        for (auto const* p : engine_detail::packs()) out.insert(out.end(), p->specs().begin(), p->specs().end());
        return out;
    }();
    return all;
}

spec const* find_spec(std::string_view name) {
    auto const all = catalogue();
    auto const at = std::ranges::find(all, name, &spec::name);
    return at == all.end() ? nullptr : &*at;
}

result<obtained> artifact_of_sync(std::string_view spec_name, target t, engine& with, wait_options wait) {
    KILN_TRY(auto const what, engine_detail::find_recipe(spec_name));
    KILN_TRY(auto made, engine_detail::find_pack(what.kind)->make(with, what, t, std::move(wait)));
    return std::move(made.got);
}

result<void> prepare_sync(std::string_view spec_name, int device, engine& with) {
    KILN_TRY(auto const what, engine_detail::find_recipe(spec_name));
    KILN_TRY(auto loaded, engine_detail::find_pack(what.kind)->load(with, what, device, {}));
    auto& s = with.internals();
    std::lock_guard const lock{s.prepared_mutex};
    s.prepared.push_back(std::move(loaded));
    return {};
}

}  // namespace kiln
