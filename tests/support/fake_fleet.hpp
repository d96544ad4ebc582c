// SPDX-License-Identifier: Apache-2.0
// A tier as a remote one will be: far away, written to, filling the disk on a hit. Nothing outside the tests knows of it.
#pragma once

#include "store/expectations.hpp"
#include "store/refusals.hpp"
#include "store/tier.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>

namespace kiln::test {

class fake_fleet final : public store::tier {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return "a server far away"; }
    [[nodiscard]] store::tier_traits traits() const noexcept override {
        return {.where = store::location::fleet,
                .writable = true,
                .persistent = true,
                .headers_sealed = false,
                .any_compiler = false,
                .on_hit = store::fill::machine};
    }
    [[nodiscard]] result<store::lookup> find(store::address const& at, store::expectation const& expected) override {
        ++finds;
        if (on_find) on_find();
        std::lock_guard const lock{mutex_};
        auto const it = entries_.find(at.key);
        if (it == entries_.end() || it->second->about.at != at) return store::lookup{};
        if (auto const wrong = store::mismatch(it->second->about, at, expected))
            return store::lookup{.hit = {}, .why = *wrong};
        if (refused_.has(at.key, base::sha256_of(it->second->payload)))
            return store::lookup{.hit = {}, .why = store::miss::refused};
        return store::lookup{.hit = it->second};
    }
    [[nodiscard]] result<std::vector<store::summary>> list(store::digest const& family,
                                                           std::optional<store::digest> const& request) override {
        ++lists;
        std::vector<store::summary> out;
        std::lock_guard const lock{mutex_};
        for (auto const& [key, e] : entries_) {
            if (e->about.at.family != family || (request && e->about.at.request != *request)) continue;
            out.push_back({.about = e->about, .bytes = e->payload.size() + 1, .from = e->from});
        }
        return out;
    }
    [[nodiscard]] result<store::put_outcome> put(store::entry_ptr const& what) override {
        if (on_put) on_put();
        auto copy = std::make_shared<store::entry>(*what);
        copy->from = store::origin_of(traits());
        std::lock_guard const lock{mutex_};
        entries_[copy->about.at.key] = copy;
        return store::put_outcome{};
    }
    void used(store::address const&) noexcept override { ++uses; }
    void reject(store::address const& at) noexcept override {
        std::lock_guard const lock{mutex_};
        auto const it = entries_.find(at.key);
        if (it != entries_.end()) refused_.add(at.key, base::sha256_of(it->second->payload));
    }

    std::atomic<int> finds{0}, lists{0}, uses{0};
    std::function<void()> on_find, on_put;

private:
    std::mutex mutex_;
    std::map<store::digest, store::entry_ptr> entries_;
    store::refusals refused_;
};

}  // namespace kiln::test
