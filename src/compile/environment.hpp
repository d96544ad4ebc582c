// SPDX-License-Identifier: Apache-2.0
//
// The environment compilers run in. NVRTC and nvJitLink read variables that change what they make and that no key knows of.
// So a worker is given a listed few and nothing else, and what was compiled in a process where one of the others is set is
// never found again.
#pragma once

#include "base/check.hpp"

#include <string>
#include <vector>

namespace kiln::compile {

enum class trust { ordinary, secure };  // secure: the program has more rights than who started it (AT_SECURE)
[[nodiscard]] trust trust_of_process() noexcept;

// "NAME=value" of what a worker is given: where things are, the language, Kiln's own settings that a worker reads, options of
// sanitizers. Never what the loader would load into it. Nothing at all in secure mode.
[[nodiscard]] std::vector<std::string> environment_for_workers(char const* const* environment, trust how);

// The first variable that is set and changes what a compiler makes; empty when there is none.
[[nodiscard]] std::string result_changing_variable(char const* const* environment);

// errc::forbidden where a compiler that ran in this process would obey whoever started it: their variables make it read and
// write files, with the rights of the program.
[[nodiscard]] result<void> check_environment(char const* const* environment, trust how);

}  // namespace kiln::compile
