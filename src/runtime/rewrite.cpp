// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/rewrite.hpp>

#include "base/config.hpp"

#include <kiln/event.hpp>

#include <atomic>

namespace kiln {

namespace {

constexpr int unread = -1;
constinit std::atomic<int> called{unread}, preset{unread};

}  // namespace

bool rewrites_enabled() noexcept {
    if (int const set = called.load(std::memory_order_relaxed); set != unread) return set == 1;
    auto read = preset.load(std::memory_order_relaxed);
    if (read == unread) {
        read = base::config::load().flag("KILN_REWRITES") ? 1 : 0;
        preset.store(read, std::memory_order_relaxed);
    }
    return read == 1;
}

void set_rewrites(std::optional<bool> on) noexcept { called.store(on ? (*on ? 1 : 0) : unread); }

bool take(rewrite const& what, std::string_view made_by) noexcept {
    if (made_by != what.producer || !rewrites_enabled()) return false;
    event_log::process().emit(
        {.kind = event_kind::rewritten, .unit = what.consumer, .reason = what.name, .detail = what.producer});
    return true;
}

}  // namespace kiln
