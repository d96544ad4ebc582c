// SPDX-License-Identifier: Apache-2.0
#include "store/tier.hpp"

#include "store/expectations.hpp"

namespace kiln::store {

std::string_view name_of(miss why) noexcept {
    switch (why) {
        case miss::absent: return "absent";
        case miss::disabled: return "disabled";
        case miss::truncated: return "truncated";
        case miss::trailing: return "trailing";
        case miss::bad_magic: return "bad-magic";
        case miss::newer_format: return "newer-format";
        case miss::bad_header: return "bad-header";
        case miss::bad_digest: return "bad-digest";
        case miss::wrong_key: return "wrong-key";
        case miss::wrong_target: return "wrong-target";
        case miss::wrong_kind: return "wrong-kind";
        case miss::wrong_toolchain: return "wrong-toolchain";
        case miss::not_regular: return "not-regular";
        case miss::too_large: return "too-large";
        case miss::bad_signature: return "bad-signature";
        case miss::refused: return "refused";
        case miss::recache: return "recache";
    }
    return "unknown";
}

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
