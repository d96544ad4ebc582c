// SPDX-License-Identifier: Apache-2.0
//
// libnvrtc-builtins: NVRTC's built-in headers and device library. NVRTC asks the loader for it by bare name and has no run
// path, so the loader's path would decide which one is compiled with, if any. Kiln takes the one beside the NVRTC file,
// and its content is part of the compiler's identity: it has no build id, and several releases share its name.
#pragma once

#include "base/check.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace kiln::cuda {

struct nvrtc_builtins {
    std::filesystem::path directory;
    std::string content;  // SHA-256 in hex over every libnvrtc-builtins there: which one is asked for, only NVRTC knows
    std::vector<std::filesystem::path> elsewhere;  // of builtins_in_use(): instead of those in the directory
};

// Beside the file as it is named, else beside what it is a link to. Loads nothing. errc::not_found where there is none.
[[nodiscard]] result<nvrtc_builtins> find_builtins(std::filesystem::path const& nvrtc);

// What a program's own NVRTC compiles with: those beside it, unless the loader would give it others: because they are in this process
// already, or the user's path has them. Loads nothing.
[[nodiscard]] result<nvrtc_builtins> builtins_in_use(std::filesystem::path const& nvrtc);

// Loads the one this version asks for, so that the loader has it when asked by name. errc::unsupported when the process has
// another one under that name already: NVRTC would be given that.
[[nodiscard]] result<void> open_builtins(nvrtc_builtins const& found, int major, int minor);

}  // namespace kiln::cuda
