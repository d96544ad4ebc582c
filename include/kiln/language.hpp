// SPDX-License-Identifier: Apache-2.0
//
// The language these headers are written in. Each of them includes this first, so that an older one is named at once. And
// the one word all of them need: KILN_PUBLIC, on the namespace of what libkiln.so exports; the rest of it is hidden.
#pragma once

#if __cplusplus < 202002L
#error "Kiln needs C++20: compile with -std=c++20"
#include <kiln_needs_cxx_20>  // there is none: without this, a page of what follows from it
#endif

#define KILN_PUBLIC [[gnu::visibility("default")]]
