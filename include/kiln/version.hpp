// SPDX-License-Identifier: Apache-2.0
//
// The version of these headers. The build system reads it from here: this is the only place to change it.
#pragma once

#include <kiln/language.hpp>

#include <string_view>

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0

#define KILN_VERSION_TEXT_(x) #x
#define KILN_VERSION_TEXT(x) KILN_VERSION_TEXT_(x)

namespace KILN_PUBLIC kiln {

inline constexpr std::string_view version = KILN_VERSION_TEXT(KILN_VERSION_MAJOR) "." KILN_VERSION_TEXT(
    KILN_VERSION_MINOR) "." KILN_VERSION_TEXT(KILN_VERSION_PATCH);

}  // namespace kiln

#undef KILN_VERSION_TEXT
#undef KILN_VERSION_TEXT_
