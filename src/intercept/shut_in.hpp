// SPDX-License-Identifier: Apache-2.0
//
// Whether a program has shut itself in. A filter of system calls may end whoever makes one that it does not know, and a compiler
// makes fewer than Kiln: from then on the real library is called and nothing else is done. A file is opened, read and closed to find
// it out, as the compiler does at its first compile. Later ones of NVRTC make no call by which it could be found out (memory, clocks and
// thread numbers): whoever lets a compiler do that and nothing more is ended by the question.
#pragma once

#include <optional>

namespace kiln::intercept {

// nullopt: nobody can tell.
[[nodiscard]] std::optional<int> filters_of_this_thread() noexcept;

// More filters than `kiln run` has, as it has told in KILN_RUN_FILTERS, or no way to know any more. Once shut in, for ever.
[[nodiscard]] bool is_shut_in() noexcept;
// The same as the last look found it, which costs nothing.
[[nodiscard]] bool was_shut_in() noexcept;

}  // namespace kiln::intercept
