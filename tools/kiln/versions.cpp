// SPDX-License-Identifier: Apache-2.0
#include "versions.hpp"

#include "compile/includes.hpp"

namespace kiln::cli {

result<void> unit_versions::add(base::digest const& family, made what) {
    auto& others = seen_[family];
    for (auto const& other : others) {
        auto const header = compile::first_contradiction(other.headers, what.headers);
        if (header.empty()) continue;
        return fail(
            errc::invalid_argument,
            "'{}' for {} in {} and for {} in {} were made from different {}: where it is absent, nobody could tell "
            "which of the two is meant; build both from the same headers, or ship the bundles apart, each with "
            "the program it was built for",
            what.name, other.target, other.from, what.target, what.from, header);
    }
    others.push_back(std::move(what));
    return {};
}

}  // namespace kiln::cli
