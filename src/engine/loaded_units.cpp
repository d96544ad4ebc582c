// SPDX-License-Identifier: Apache-2.0
#include "engine/loaded_units.hpp"

#include "engine/engine_state.hpp"

namespace kiln::engine_detail {

std::vector<loaded_units::unit_ptr> loaded_units::found_by(base::digest const& identity, int device) {
    std::lock_guard const lock{mutex_};
    auto const at = found_.find({identity, device});
    if (at == found_.end()) return {};
    std::vector<unit_ptr> out;
    std::erase_if(at->second, [&](auto const& weak) {
        auto unit = weak.lock();
        if (unit) out.insert(out.begin(), std::move(unit));
        return weak.expired();
    });
    if (at->second.empty()) found_.erase(at);
    return out;
}

loaded_units::unit_ptr loaded_units::find(std::string const& key, int device) {
    std::lock_guard const lock{mutex_};
    auto const at = units_.find({key, device});
    if (at == units_.end()) return nullptr;
    auto alive = at->second.lock();
    if (!alive) units_.erase(at);
    return alive;
}

void loaded_units::remember(base::digest const& identity, int device, unit_ptr const& unit) {
    std::lock_guard const lock{mutex_};
    units_[{unit->key, device}] = unit;
    auto& before = found_[{identity, device}];
    std::erase_if(before, [&](auto const& weak) {
        auto const other = weak.lock();
        return !other || other == unit;
    });
    before.push_back(unit);
}

loaded_units::turn::turn(loaded_units& of, std::string key, int device) : of_{of}, place_{std::move(key), device} {
    std::unique_lock lock{of_.mutex_};
    of_.turn_ended_.wait(lock, [&] { return !of_.being_loaded_.contains(place_); });
    of_.being_loaded_.insert(place_);
}

loaded_units::turn::~turn() {
    {
        std::lock_guard const lock{of_.mutex_};
        of_.being_loaded_.erase(place_);
    }
    of_.turn_ended_.notify_all();
}

}  // namespace kiln::engine_detail
