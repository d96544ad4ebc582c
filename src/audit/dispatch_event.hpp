// SPDX-License-Identifier: Apache-2.0
// What Kiln itself said of a dispatch, in a recording. It is never trusted: a word of another type than it should have is as if it were
// not there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kiln::audit {

struct dispatch_event {
    std::string kind;  // "dispatched", "fell_back", "failed"
    std::string op, requested, selected, reason;
    bool has_no_items = false;
};

// nullopt for what is no object.
[[nodiscard]] std::optional<dispatch_event> dispatch_event_of(std::string_view text);

}  // namespace kiln::audit
