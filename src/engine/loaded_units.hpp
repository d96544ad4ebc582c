// SPDX-License-Identifier: Apache-2.0
// What is loaded, and alive, on which device: by the key of its artifact. Whoever asks comes with an identity, which is
// finer, and remembers here which keys it found before. Holds nothing: handles do.
#pragma once

#include "base/digest.hpp"

#include <kiln/engine.hpp>

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

namespace kiln::engine_detail {

class loaded_units {
public:
    using unit_ptr = std::shared_ptr<ready_unit::state const>;

    // What this identity found before and is still alive, the latest first. Which of them its headers mean is for the
    // caller to see.
    [[nodiscard]] std::vector<unit_ptr> found_by(base::digest const& identity, int device);
    // Null where it is not loaded.
    [[nodiscard]] unit_ptr find(std::string const& key, int device);
    // `identity` came to this.
    void remember(base::digest const& identity, int device, unit_ptr const& unit);

    // One thread loads; the others wait for it.
    class turn {
    public:
        turn(loaded_units& of, std::string key, int device);
        ~turn();
        turn(turn const&) = delete;
        turn& operator=(turn const&) = delete;

    private:
        loaded_units& of_;
        std::pair<std::string, int> place_;
    };

private:
    using place = std::pair<std::string, int>;  // key, device
    std::mutex mutex_;
    std::condition_variable turn_ended_;
    std::map<place, std::weak_ptr<ready_unit::state const>> units_;
    std::map<std::pair<base::digest, int>, std::vector<std::weak_ptr<ready_unit::state const>>> found_;
    std::set<place> being_loaded_;
};

}  // namespace kiln::engine_detail
