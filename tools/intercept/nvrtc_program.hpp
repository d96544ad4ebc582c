// SPDX-License-Identifier: Apache-2.0
// A program of NVRTC as the stand-in keeps it, and how one is compiled. See nvrtc.cpp.
#pragma once

#include "standin.hpp"

namespace kiln::intercept {

// The status codes of nvrtc.h that a stand-in gives itself. All versions agree on them.
enum nvrtc_status : int {
    nvrtc_success = 0,
    nvrtc_out_of_memory = 1,
    nvrtc_invalid_input = 3,
    nvrtc_invalid_program = 4,
    nvrtc_compilation = 6,
    nvrtc_builtin_failure = 7,
    nvrtc_too_late_for_names = 8,
    nvrtc_too_early_for_names = 9,
    nvrtc_bad_expression = 10,
    nvrtc_internal_error = 11,
};

struct program {
    foreign_program asked;
    int (*callback)(void*, void*) = nullptr;
    void* payload = nullptr;

    void* real = nullptr;                  // not null: the real library answers everything
    std::optional<foreign_answer> answer;  // compiled, and everything about it is known
    std::optional<std::string>
        failed_log;  // it did not compile, and `real` was given virtual names: what its log would say

    // When one of the two above is there.
    [[nodiscard]] std::string const& log() const { return answer ? answer->log : *failed_log; }
    // Makes a real program of the record, as it is now, if it is none yet. Null when even that fails.
    void* as_real();
};

[[nodiscard]] standin& self();

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
