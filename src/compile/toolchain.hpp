// SPDX-License-Identifier: Apache-2.0
//
// Which compiler would be used, without loading it: its file, and its identity from the build id in that file. The host
// process needs no more to look artifacts up; whoever compiles reports the identity of what was really loaded.
#pragma once

#include "compile/job.hpp"
#include "cuda/library_search.hpp"
#include "cuda/nvjitlink_api.hpp"
#include "cuda/nvrtc_api.hpp"

namespace kiln::compile {

struct tool {
    std::string path;
    std::string toolchain;  // "nvrtc 31b78904...": the text that goes into keys
    std::string found;      // how: "KILN_CUDA_PATH", "loader path", ...
};

// errc::not_found lists the places asked.
[[nodiscard]] result<tool> find_nvrtc(cuda::library_search const& search);
[[nodiscard]] result<tool> find_nvjitlink(cuda::library_search const& search);
[[nodiscard]] toolchain_paths find_toolchain(cuda::library_search const& search);

// GNU build id of a shared object on disk, in hex, or "sha256:..." of the whole file where it has none.
[[nodiscard]] result<std::string> build_id_of(std::filesystem::path const& file);

// Loads exactly this file, once per process.
[[nodiscard]] result<std::shared_ptr<cuda::nvrtc_api const>> open_nvrtc(std::string const& path);
[[nodiscard]] result<std::shared_ptr<cuda::nvjitlink_api const>> open_nvjitlink(std::string const& path);

// The identity text of a loaded compiler; equal to tool::toolchain of the same file.
[[nodiscard]] std::string toolchain_text(cuda::nvrtc_api const& api);
[[nodiscard]] std::string toolchain_text(cuda::nvjitlink_api const& api);

}  // namespace kiln::compile
