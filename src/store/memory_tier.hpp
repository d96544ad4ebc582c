// SPDX-License-Identifier: Apache-2.0
//
// The first tier: entries this process made or found, kept as shared pointers, bounded in bytes, the least
// recently used leaving first. Each keeps its origin. One mutex, never held while anything slow happens.
#pragma once

#include "base/fork_guard.hpp"
#include "store/refusals.hpp"
#include "store/tier.hpp"

#include <list>
#include <map>

namespace kiln::store {

struct memory_options {
    std::uint64_t max_bytes = std::uint64_t{256} << 20;  // payloads and labels together
};

class memory_tier final : public tier {
public:
    explicit memory_tier(memory_options options = {}) : options_{options} {}

    [[nodiscard]] std::string_view name() const noexcept override { return "memory"; }
    [[nodiscard]] tier_traits traits() const noexcept override {
        return {.where = location::process,
                .writable = true,
                .persistent = false,
                .headers_sealed = false,
                .any_compiler = false,
                .on_hit = fill::nothing};
    }
    [[nodiscard]] result<lookup> find(address const& at, expectation const& expected) override;
    [[nodiscard]] result<std::vector<summary>> list(digest const& family,
                                                    std::optional<digest> const& request) override;
    // An entry larger than the whole tier is not kept; that is no error.
    [[nodiscard]] result<put_outcome> put(entry_ptr const& what) override;
    void used(address const& at) noexcept override;
    void reject(address const& at) override;

    void clear() noexcept;
    [[nodiscard]] std::uint64_t bytes() const noexcept;
    [[nodiscard]] std::size_t entries() const noexcept;

private:
    using place = std::pair<digest, digest>;  // family, key
    struct node {
        entry_ptr what;
        std::list<place>::iterator use;
        std::uint64_t born = 0;
    };
    void drop(std::map<place, node>::iterator at);

    memory_options options_;
    mutable base::forkable_mutex mutex_;
    std::map<place, node> nodes_;
    std::list<place> uses_;  // most recent first
    std::uint64_t bytes_ = 0;
    std::uint64_t births_ = 0;
    refusals refused_;
};

}  // namespace kiln::store
