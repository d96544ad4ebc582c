// SPDX-License-Identifier: Apache-2.0
//
// The environment compilers run in. NVRTC and nvJitLink read variables that change what they make and that no key knows of.
// So a worker is given a listed few and nothing else, and what was compiled in a process where one of the others is set is
// never found again. They also compute as their thread does.
#pragma once

#include "base/check.hpp"

#include <cfenv>
#include <clocale>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::compile {

enum class trust { ordinary, secure };  // secure: the program has more rights than who started it (AT_SECURE)
[[nodiscard]] trust trust_of_process() noexcept;

// Of this thread, a bit for each; 0 where the kernel does not tell.
[[nodiscard]] std::uint64_t effective_capabilities() noexcept;
// Whether this thread may be refused files that others of its user read: it has given up rights, as sandboxes (Landlock) make it
// do, or is root without root's. A sandbox that root made for itself, with all rights kept, does not show.
[[nodiscard]] bool is_confined() noexcept;

// Whether this thread rounds to the nearest number, takes small ones for what they are, and reads "1.5" as one and a half: the compiler
// works out constants as its thread does. Those of programs that were linked with -ffast-math, or write a decimal comma, do not.
[[nodiscard]] bool computes_as_usual() noexcept;
// While one of these lives, its thread does. Threads that a compiler starts by itself read numbers as the program does.
class computing_as_usual {
public:
    computing_as_usual() noexcept;
    ~computing_as_usual();
    computing_as_usual(computing_as_usual const&) = delete;
    computing_as_usual& operator=(computing_as_usual const&) = delete;

private:
    std::fenv_t arithmetic_{};  // the caller's
    ::locale_t language_ = nullptr;
};

// What a compiler in this process is told, less what makes it start threads of its own where they would read "1.5" as one (--split-compile).
// What comes out is the same code in another order: not to be kept.
[[nodiscard]] std::vector<std::string> without_threads_that_misread(std::vector<std::string> arguments);

// "NAME=value" of what a worker is given: where things are, the language, Kiln's own settings that a worker reads, options of
// sanitizers. Never what the loader would load into it. Nothing at all in secure mode.
[[nodiscard]] std::vector<std::string> environment_for_workers(char const* const* environment, trust how);

// The first variable that is set and changes what a compiler makes; empty when there is none.
[[nodiscard]] std::string result_changing_variable(char const* const* environment);

// errc::forbidden where a compiler that ran in this process would obey whoever started it: their variables make it read and
// write files, with the rights of the program.
[[nodiscard]] result<void> check_environment(char const* const* environment, trust how);

}  // namespace kiln::compile
