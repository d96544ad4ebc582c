// SPDX-License-Identifier: Apache-2.0
//
// A bundle that is part of a program. kiln_add_kernels(... BUNDLE) makes one; a static object of this type tells the
// engines of the process about it. Registering stores a pointer: nothing is read, opened or started. Engines other than
// the process's that were made before do not see it, so keep these objects static.
#pragma once

#include <kiln/language.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace KILN_PUBLIC kiln {

class embedded_bundle {
public:
    // The name is copied; the data must outlive every engine. A library that has it stays loaded when it is closed.
    embedded_bundle(std::string_view name, std::span<std::byte const> data);
};

}  // namespace kiln
