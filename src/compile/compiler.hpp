// SPDX-License-Identifier: Apache-2.0
// The two ways run_job makes an artifact, and what they share. In-process; workers call these too.
#pragma once

#include "compile/elf.hpp"
#include "compile/job.hpp"

namespace kiln::compile {

class precompiled_headers;

// `kept` may be null: then no precompiled header is used or made.
[[nodiscard]] result<product> run_compile(job const& j, compile_job const& c, precompiled_headers* kept);
[[nodiscard]] result<product> run_link(job const& j, link_job const& l);

// Kernels (and, of a cubin, constants) that are in the image.
[[nodiscard]] result<cubin_contents> read_image(artifact const& a, std::span<std::string const> exports);
// The kernel with this lowered name, under the name it was asked for; an image without it is an error.
[[nodiscard]] result<kernel_info> kernel_named(std::span<kernel_info const> found, std::string const& name,
                                               std::string const& lowered, artifact_kind kind);
[[nodiscard]] result<void> check_exports(std::span<std::string const> exports, artifact const& a);

}  // namespace kiln::compile
