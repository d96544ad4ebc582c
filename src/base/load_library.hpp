// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/fork_guard.hpp"

#include <cstddef>
#include <link.h>
#include <optional>

namespace kiln::base {

// While the loader holds its locks: around dlsym(), dladdr() and the like, which fork() in other threads then waits for. The loader does not keep
// fork() away by itself, and a child made in the middle of this waits for ever, or dies.
class loader_use {
public:
    loader_use() noexcept {
        if (!keeps_fork_away()) whole_.emplace();
    }

private:
    std::optional<no_fork_meanwhile> whole_;
};

// dlopen(), likewise.
[[nodiscard]] void* load_library(char const* name, int how) noexcept;

// Whatever holds `address` stays where it is to the end of the process, even if it is closed. Nothing to do for the program itself.
void keep_loaded(void const* address) noexcept;

// dl_iterate_phdr(), likewise. What the visitor throws is thrown when the loader has let go of its locks.
using library_visitor = int (*)(::dl_phdr_info* info, std::size_t size, void* data);
void visit_libraries(library_visitor visit, void* data);

}  // namespace kiln::base
