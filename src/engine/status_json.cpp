// SPDX-License-Identifier: Apache-2.0
#include "engine/status_json.hpp"

#include <nlohmann/json.hpp>

namespace kiln::engine_detail {

nlohmann::ordered_json to_json(unit_status const& of) {
    return {{"name", of.name},
            {"target", of.target},
            {"state", name_of(of.state)},
            {"priority", name_of(of.how)},
            {"from", of.from ? nlohmann::ordered_json(name_of(*of.from)) : nlohmann::ordered_json()},
            {"miss", of.miss},
            {"consumers", of.consumers},
            {"submitted_ms", of.submitted_ms},
            {"since_ms", of.since_ms},
            {"ready_ms", of.ready_ms},
            {"compile_ms", of.compile_ms},
            {"load_ms", of.load_ms},
            {"bytes", of.bytes},
            {"waits", of.waits},
            {"blocked_ms", of.blocked_ms},
            {"error", of.error}};
}

}  // namespace kiln::engine_detail
