// SPDX-License-Identifier: Apache-2.0
// Who wants to know what the program really asked for: profiles, and tests of declarations. Costs one load of an atomic
// where nobody does.
#pragma once

#include "engine/recipe.hpp"
#include "engine/thread_role.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

namespace kiln::engine_detail {

struct use_record {
    std::string_view name;
    base::digest id;  // a unit's identity (identity.hpp), or a specialisation's own
    target for_target;
    std::string_view key = {};  // of the artifact, 64 hex digits
    provenance from = provenance::memory;
    double compile_ms = 0;
    double waited_ms = 0;                                       // from asking to answer
    std::function<std::optional<recipe>()> const& make_recipe;  // called by whoever has not seen this one yet
};

class use_observer {
public:
    // On the thread that asked, after it has its answer; the same thing may come many times. Quick, and does not throw.
    virtual void used(use_record const& what) = 0;

protected:
    ~use_observer() = default;
};

class use_list {
public:
    [[nodiscard]] bool watched() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }
    void add(std::shared_ptr<use_observer> more) {
        std::lock_guard const lock{mutex_};
        all_.push_back(std::move(more));
        count_.store(all_.size(), std::memory_order_relaxed);
    }
    void remove(use_observer const* which) {
        std::lock_guard const lock{mutex_};
        std::erase_if(all_, [&](auto const& o) { return o.get() == which; });
        count_.store(all_.size(), std::memory_order_relaxed);
    }
    void tell(use_record const& what) const {
        std::vector<std::shared_ptr<use_observer>> now;
        {
            std::lock_guard const lock{mutex_};
            now = all_;
        }
        for (auto const& o : now) o->used(what);
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<use_observer>> all_;
    std::atomic<std::size_t> count_{0};
};

// Around everything a caller can ask for: what is asked for inside is a part of it, and no use of its own.
class use_scope {
public:
    use_scope() noexcept : outermost_{depth()++ == 0 && thread_role::current().what == thread_role::kind::caller} {}
    ~use_scope() { --depth(); }
    use_scope(use_scope const&) = delete;
    use_scope& operator=(use_scope const&) = delete;
    [[nodiscard]] bool outermost() const noexcept { return outermost_; }

private:
    static int& depth() noexcept {
        thread_local int d = 0;
        return d;
    }
    bool outermost_;
};

}  // namespace kiln::engine_detail
