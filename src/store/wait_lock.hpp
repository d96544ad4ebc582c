// SPDX-License-Identifier: Apache-2.0
// flock(2) that never waits for ever.
#pragma once

#include "base/clock.hpp"

#include <filesystem>

namespace kiln::store {

enum class lock_attempt { taken, busy, failed };

// `operation` is LOCK_EX or LOCK_SH.
[[nodiscard]] lock_attempt try_flock(int fd, int operation) noexcept;
[[nodiscard]] lock_attempt wait_flock(int fd, int operation, base::time_point deadline) noexcept;

// Whether `path` still names the file that is open as `fd`.
[[nodiscard]] bool same_file(int fd, std::filesystem::path const& path) noexcept;

}  // namespace kiln::store
