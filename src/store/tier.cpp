// SPDX-License-Identifier: Apache-2.0
#include "store/tier.hpp"

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
        case miss::unreadable: return "unreadable";
        case miss::open_to_others: return "open-to-others";
        case miss::too_large: return "too-large";
        case miss::bad_signature: return "bad-signature";
        case miss::not_signed: return "unsigned";
        case miss::unknown_key: return "unknown-key";
        case miss::old_epoch: return "old-epoch";
        case miss::refused: return "refused";
        case miss::recache: return "recache";
    }
    return "unknown";
}

std::string_view name_of(location where) noexcept {
    switch (where) {
        case location::process: return "process";
        case location::machine: return "machine";
        case location::shipped: return "shipped";
        case location::fleet: return "fleet";
    }
    return "unknown";
}

}  // namespace kiln::store
