// SPDX-License-Identifier: Apache-2.0
#include "store/expectations.hpp"

namespace kiln::store {

std::optional<miss> mismatch(label const& about, address const& at, expectation const& expected) noexcept {
    auto const differs = [](std::string const& wanted, std::string const& has) {
        return !wanted.empty() && wanted != has;
    };
    if (about.at != at) return miss::wrong_key;
    if (differs(expected.target, about.target)) return miss::wrong_target;
    if (differs(expected.kind, about.kind)) return miss::wrong_kind;
    if (differs(expected.toolchain, about.toolchain)) return miss::wrong_toolchain;
    return std::nullopt;
}

}  // namespace kiln::store
