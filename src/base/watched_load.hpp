// SPDX-License-Identifier: Apache-2.0
//
// dlopen() with somebody who comes between: when the library is in its place, with all that it calls of others, and has not run anything. The loader has
// nothing of the kind but for auditors. So it is asked for a library of nobody's that needs two others: the one that is meant, and one that is
// nothing but an address to be called as it starts. All are put in their places before the first of them starts, and the last that is needed starts
// first. Both libraries are made in memory, hold no code, and are gone when this returns.
#pragma once

#include <link.h>

namespace kiln::base {

// With the loader's locks held, on the thread that loads. Must not throw, and must not load anything.
using load_watcher = void (*)(ElfW(Addr) base, ElfW(Dyn) const* dynamic) noexcept;

// A handle like dlopen's. Where `file` is loaded already, is no absolute path or the system does not let itself be asked in this way, the watcher may not be called, or
// called when the library has started.
[[nodiscard]] void* load_watched(char const* file, int how, load_watcher watcher) noexcept;

}  // namespace kiln::base
