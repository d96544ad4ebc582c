// SPDX-License-Identifier: Apache-2.0
//
// What a source begins with: the directives before its first word of C++. A precompiled header stands for those, and two
// compiles can share one only if they agree in them and in all that a front end is told besides.
#pragma once

#include "base/digest.hpp"
#include "compile/job.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace kiln::compile {

// From the beginning to the end of the last leading directive; empty where none of them is an #include. A group of #if ... #endif
// counts as a whole, because which of its words are C++ only a preprocessor can tell: so this may be more than a compiler takes
// for its prefix, never less.
[[nodiscard]] std::string_view leading_directives(std::string_view source);

// The names in its #include directives, as they are written between <> or "".
[[nodiscard]] std::vector<std::string_view> included_names(std::string_view directives);

// Equal where one precompiled header may serve both jobs, as long as the headers say the same; nullopt where none can help.
[[nodiscard]] std::optional<base::digest> prefix_of(job const& j);

}  // namespace kiln::compile
