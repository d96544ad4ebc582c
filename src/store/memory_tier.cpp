// SPDX-License-Identifier: Apache-2.0
#include "store/memory_tier.hpp"

#include "store/expectations.hpp"

#include <algorithm>

namespace kiln::store {

namespace {

std::uint64_t cost_of(entry const& e) noexcept {
    auto const& a = e.about;
    return e.payload.size() + sizeof(entry) + a.name.size() + a.target.size() + a.kind.size() + a.toolchain.size() +
           a.producer.size() + a.licence.size();
}

}  // namespace

result<lookup> memory_tier::find(address const& at, expectation const& expected) {
    entry_ptr hit;
    {
        std::lock_guard const lock{mutex_};
        auto const it = nodes_.find({at.family, at.key});
        if (it == nodes_.end() || it->second.what->about.at != at) return lookup{};
        hit = it->second.what;
    }
    if (auto const wrong = mismatch(hit->about, at, expected)) return lookup{.hit = {}, .why = *wrong};
    if (refused_.any() && refused_.has(at.key, base::sha256_of(hit->payload)))
        return lookup{.hit = {}, .why = miss::refused};
    return lookup{.hit = std::move(hit)};
}

void memory_tier::used(address const& at) noexcept {
    std::lock_guard const lock{mutex_};
    auto const it = nodes_.find({at.family, at.key});
    if (it != nodes_.end() && it->second.what->about.at == at) uses_.splice(uses_.begin(), uses_, it->second.use);
}

result<std::vector<summary>> memory_tier::list(digest const& family, std::optional<digest> const& request) {
    std::vector<std::pair<std::uint64_t, summary>> some;
    {
        std::lock_guard const lock{mutex_};
        for (auto it = nodes_.lower_bound({family, digest{}}); it != nodes_.end() && it->first.first == family; ++it) {
            auto const& what = *it->second.what;
            if (request && what.about.at.request != *request) continue;
            some.emplace_back(it->second.born,
                              summary{.about = what.about, .bytes = what.payload.size(), .from = what.from});
        }
    }
    std::sort(some.begin(), some.end(), [](auto const& a, auto const& b) { return a.first > b.first; });
    std::vector<summary> out;
    out.reserve(some.size());
    for (auto& [born, what] : some) out.push_back(std::move(what));
    return out;
}

result<put_outcome> memory_tier::put(entry_ptr const& what) {
    KILN_ASSERT(what != nullptr);
    auto const cost = cost_of(*what);
    if (cost > options_.max_bytes) return put_outcome{.kept = false, .why = "too-large"};
    if (refused_.any() && refused_.has(what->about.at.key, base::sha256_of(what->payload)))
        return put_outcome{.kept = false, .why = "refused"};
    std::vector<entry_ptr> gone;  // freed after the lock
    std::lock_guard const lock{mutex_};
    place const at{what->about.at.family, what->about.at.key};
    if (auto const old = nodes_.find(at); old != nodes_.end()) {
        gone.push_back(old->second.what);
        drop(old);
    }
    while (bytes_ + cost > options_.max_bytes) {
        auto const last = nodes_.find(uses_.back());
        gone.push_back(last->second.what);
        drop(last);
    }
    std::list<place> use{at};
    nodes_.emplace(at, node{.what = what, .use = use.begin(), .born = ++births_});
    uses_.splice(uses_.begin(), use);
    bytes_ += cost;
    return put_outcome{};
}

void memory_tier::drop(std::map<place, node>::iterator at) {
    bytes_ -= cost_of(*at->second.what);
    uses_.erase(at->second.use);
    nodes_.erase(at);
}

void memory_tier::reject(address const& at) {
    entry_ptr bad;
    {
        std::lock_guard const lock{mutex_};
        auto const it = nodes_.find({at.family, at.key});
        if (it == nodes_.end()) return;
        bad = it->second.what;
        drop(it);
    }
    refused_.add(at.key, base::sha256_of(bad->payload));
}

void memory_tier::clear() noexcept {
    std::map<place, node> gone;
    std::lock_guard const lock{mutex_};
    gone.swap(nodes_);
    uses_.clear();
    bytes_ = 0;
}

std::uint64_t memory_tier::bytes() const noexcept {
    std::lock_guard const lock{mutex_};
    return bytes_;
}

std::size_t memory_tier::entries() const noexcept {
    std::lock_guard const lock{mutex_};
    return nodes_.size();
}

}  // namespace kiln::store
