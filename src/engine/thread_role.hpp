// SPDX-License-Identifier: Apache-2.0
// On whose behalf the current thread asks the engine: a caller's, who is then blocked and counted as such, or the
// warm-up's, which nobody waits for.
#pragma once

#include <kiln/pending.hpp>

namespace kiln::engine_detail {

struct thread_role {
    enum class kind {
        caller,
        background,  // asks with `how`; nothing is counted as a wait or a use
        find_only,   // the same, and what would have to be compiled is errc::timeout instead
    };
    kind what = kind::caller;
    priority how = priority::blocking;

    [[nodiscard]] static thread_role& current() noexcept {
        thread_local thread_role role;
        return role;
    }
};

class role_scope {
public:
    explicit role_scope(thread_role role) noexcept : before_{thread_role::current()} { thread_role::current() = role; }
    ~role_scope() { thread_role::current() = before_; }
    role_scope(role_scope const&) = delete;
    role_scope& operator=(role_scope const&) = delete;

private:
    thread_role before_;
};

}  // namespace kiln::engine_detail
