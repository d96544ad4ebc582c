// SPDX-License-Identifier: Apache-2.0
#include "audit/dispatch_event.hpp"

#include <nlohmann/json.hpp>

namespace kiln::audit {

std::optional<dispatch_event> dispatch_event_of(std::string_view text) {
    auto const said = nlohmann::json::parse(text, nullptr, false);
    if (!said.is_object()) return std::nullopt;
    dispatch_event out;
    for (auto const& [key, to] : {std::pair{"kind", &out.kind},
                                  {"op", &out.op},
                                  {"requested", &out.requested},
                                  {"selected", &out.selected},
                                  {"reason", &out.reason}})
        if (auto const at = said.find(key); at != said.end() && at->is_string()) *to = at->get<std::string>();
    auto const items = said.find("items");
    out.has_no_items = items != said.end() && items->is_number() && items->get<double>() == 0;
    return out;
}

}  // namespace kiln::audit
