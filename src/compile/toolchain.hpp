// SPDX-License-Identifier: Apache-2.0
//
// Which compiler would be used, without loading it: its file, and its identity from that file and what lies beside it. The
// host process needs no more to look artifacts up; whoever compiles opens the file with cuda::load_nvrtc or
// load_nvjitlink and reports the identity of what was really loaded.
#pragma once

#include "compile/job.hpp"
#include "cuda/library_search.hpp"
#include "cuda/nvjitlink_api.hpp"
#include "cuda/nvrtc_api.hpp"

namespace kiln::compile {

struct tool {
    std::string path;       // absolute
    std::string toolchain;  // the text that goes into keys: "nvrtc 31b78904... builtins 84f1c503..."
    std::string found;      // how: "KILN_CUDA_PATH", "loader path", ...
};

// The first that can be identified. errc::not_found lists the places asked, and what is wrong with what was there.
[[nodiscard]] result<tool> find_nvrtc(cuda::library_search const& search);
[[nodiscard]] result<tool> find_nvjitlink(cuda::library_search const& search);
[[nodiscard]] toolchain_paths find_toolchain(cuda::library_search const& search);

// Exactly this file: a program's own compiler.
[[nodiscard]] result<tool> nvrtc_at(std::filesystem::path const& file);
[[nodiscard]] result<tool> nvjitlink_at(std::filesystem::path const& file);

// The number in the name of a library's file, or of the file a link leads to: 13 of libnvJitLink.so.13. 0: it has none.
[[nodiscard]] int major_of(std::filesystem::path const& library);

// The identity text of a loaded compiler; equal to tool::toolchain of the same file.
[[nodiscard]] std::string toolchain_text(cuda::nvrtc_api const& api);
[[nodiscard]] std::string toolchain_text(cuda::nvjitlink_api const& api);

}  // namespace kiln::compile
