// SPDX-License-Identifier: Apache-2.0
#include "declared.hpp"

#include "engine/pack.hpp"

#include <kiln/demand.hpp>
#include <kiln/runtime/operation.hpp>

#include <algorithm>

namespace kiln::cli {

namespace {

void add_once(std::vector<std::string>& to, std::vector<std::string> const& more) {
    for (auto const& name : more) {
        if (find_spec(name) != nullptr && std::ranges::find(to, name) == to.end()) to.push_back(name);
    }
}

declared by_variants(operation const& of) {
    declared out{.operation = std::string{of.name()}, .pack = std::string{of.pack()}, .names = {}};
    for (auto const& v : of.variants()) {
        if (v.where != place::gpu) continue;
        for (int kind = 0; kind <= static_cast<int>(scalar::record); ++kind) {
            auto const type = static_cast<scalar>(kind);
            if (v.types.has(type)) add_once(out.names, needs_of(v, type));
        }
    }
    return out;
}

declared by_requirement(requirement const& r) {
    declared out{.operation = std::string{r.consumer()}, .pack = std::string{r.more().pack}, .names = r.names()};
    for (auto const& fact : r.more().when) out.when.emplace_back(fact);
    return out;
}

}  // namespace

std::vector<declared> declarations() {
    std::vector<declared> out;
    for (auto const* p : engine_detail::packs()) {
        for (auto const* o : p->operations()) {
            if (auto by = by_variants(*o); !by.names.empty()) out.push_back(std::move(by));
        }
    }
    for (auto const* r : requirements()) out.push_back(by_requirement(*r));
    return out;
}

}  // namespace kiln::cli
