// SPDX-License-Identifier: Apache-2.0
#include "intercept/shut_in.hpp"

#include "intercept/filters.h"

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace kiln::intercept {

namespace {

// -1: it has not told.
int filters_at_start() noexcept {
    auto const* const told = ::secure_getenv("KILN_RUN_FILTERS");
    return told == nullptr || *told == 0 ? -1 : std::atoi(told);
}

// When the library is loaded: programs may change their environment.
int const at_start = filters_at_start();

std::atomic<bool> known{false};

}  // namespace

std::optional<int> filters_of_this_thread() noexcept {
    char text[KILN_STATUS_ROOM];
    int const file = ::open(KILN_STATUS_FILE, O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    auto const bytes = ::read(file, text, sizeof text);
    ::close(file);
    int const count = bytes <= 0 ? -1 : kiln_filters_in(text, static_cast<unsigned long>(bytes));
    return count < 0 ? std::nullopt : std::optional{count};
}

bool was_shut_in() noexcept { return known.load(std::memory_order_relaxed); }

bool is_shut_in() noexcept {
    if (at_start < 0 || was_shut_in()) return at_start >= 0;
    auto const now = filters_of_this_thread();
    if (now && *now <= at_start) return false;
    known.store(true, std::memory_order_relaxed);
    return true;
}

}  // namespace kiln::intercept
