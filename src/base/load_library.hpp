// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln::base {

// dlopen(), and fork() in other threads waits meanwhile: the loader does not keep fork() away by itself, and a child made in the middle of
// this dies at its first dlopen() ("Inconsistency detected by ld.so").
[[nodiscard]] void* load_library(char const* name, int how) noexcept;

}  // namespace kiln::base
