// SPDX-License-Identifier: Apache-2.0
// Correlation ids to places in a vector. CUPTI counts them up, so a table by id is small and fast; a recording is never trusted, so
// ids that lie far apart go into a map.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace kiln::audit {

class correlation_map {
public:
    // For ids from `least` to `most`, about `count` of them.
    correlation_map() = default;
    correlation_map(std::uint32_t least, std::uint32_t most, std::size_t count) : least_{least} {
        if (most >= least && most - least < 16 * count + 1024) table_.assign(std::size_t{most} - least + 1, -1);
    }

    // Whether it was not there yet; the first one stays.
    bool insert(std::uint32_t id, std::int32_t at) {
        if (id < least_ || id - least_ >= table_.size()) return far_.try_emplace(id, at).second;
        auto& to = table_[id - least_];
        if (to >= 0) return false;
        to = at;
        return true;
    }
    // -1 for what is not there.
    [[nodiscard]] std::int32_t find(std::uint32_t id) const {
        if (id >= least_ && id - least_ < table_.size()) return table_[id - least_];
        auto const at = far_.find(id);
        return at == far_.end() ? -1 : at->second;
    }

private:
    std::uint32_t least_ = 0;
    std::vector<std::int32_t> table_;
    std::unordered_map<std::uint32_t, std::int32_t> far_;
};

// Over the ids of all in it.
template <class Records>
[[nodiscard]] correlation_map map_for(Records const& all) {
    std::uint32_t least = ~0u, most = 0;
    for (auto const& r : all) {
        least = r.correlation < least ? r.correlation : least;
        most = r.correlation > most ? r.correlation : most;
    }
    return {least, most, all.size()};
}

}  // namespace kiln::audit
