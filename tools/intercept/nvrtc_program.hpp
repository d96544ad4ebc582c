// SPDX-License-Identifier: Apache-2.0
// A program of NVRTC as the stand-in keeps it, and how one is compiled. See nvrtc.cpp.
#pragma once

#include "standin.hpp"

#include "intercept/real_program.hpp"

namespace kiln::intercept {

struct program {
    foreign_program asked;
    flow_callback watcher;

    void* real = nullptr;                  // not null: the real library answers everything
    std::optional<foreign_answer> answer;  // compiled, and everything about it is known
    // It did not compile. With `real`, which was given virtual names: what its log would say. Without, it was a worker that tried: all it
    // was asked there, and the options it was tried with.
    std::optional<foreign_answer> failure;
    std::vector<std::string> failed_options;

    // What is known without the real library, if something is.
    [[nodiscard]] foreign_answer const* known() const noexcept {
        if (answer) return &*answer;
        return failure && real == nullptr ? &*failure : nullptr;
    }
    [[nodiscard]] std::string const* log() const noexcept {
        if (answer) return &answer->log;
        return failure ? &failure->log : nullptr;
    }
    // Makes a real program of the record, as it is now, if it is none yet: one that failed fails again. Null when even that
    // is not possible.
    void* as_real();
};

[[nodiscard]] int compile_program(program& p, std::vector<std::string> const& options);

int foreign_create(void** handle, char const* source, char const* name, int count, char const* const* texts,
                   char const* const* names);

struct facts {
    int major = 0, minor = 0;
    std::vector<int> archs;
};
// Kept, so that asking for a version loads no compiler. Null when the real library cannot be asked either.
[[nodiscard]] facts const* compiler_facts();

}  // namespace kiln::intercept
