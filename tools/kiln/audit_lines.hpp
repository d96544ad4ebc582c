// SPDX-License-Identifier: Apache-2.0
// Which lines the native frames of a recording are, asked of addr2line right after the run.
#pragma once

#include "audit/native_lines.hpp"
#include "audit/source_text.hpp"

namespace kiln::cli {

// Looks them up, keeps them in the recording's directory and puts them into the stacks. Where there is no addr2line, or the objects have no
// lines, frames stay what they are: an object and an offset.
void look_up_lines(std::filesystem::path const& directory, audit::recording& to);

// After that: reads the source around the lines and keeps it there, too.
void keep_sources(std::filesystem::path const& directory, audit::recording& to);

}  // namespace kiln::cli
