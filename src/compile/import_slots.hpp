// SPDX-License-Identifier: Apache-2.0
// What one shared library calls of others: its own import slots, pointed elsewhere. Nothing else in the process is touched.
#pragma once

#include "base/check.hpp"

#include <link.h>
#include <span>
#include <string_view>

namespace kiln::compile {

struct import_slot {
    std::string_view import;
    void* replacement;
    int pointed =
        0;  // how many: none where the library imports nothing of that name, or in a way that is not known here
};

// `library` is a handle from dlopen.
[[nodiscard]] result<void> point_imports(void* library, std::span<import_slot> slots);
// Of one that lies at `base`. Takes no memory and no lock.
void point_imports(ElfW(Addr) base, ElfW(Dyn) const* dynamic, std::span<import_slot> slots) noexcept;

}  // namespace kiln::compile
