// SPDX-License-Identifier: Apache-2.0
//
// What a large file holds, as a digest: libraries without a build id are told apart by it. Hashed once in a process for as long
// as the file stays what it is (base/file_state.hpp), and once on a machine where a directory is given to
// remember it in: 4 MB take 3 ms, which every new process would pay before its first lookup. One that changed within the last
// two seconds is hashed each time. Whoever writes to a mapping of it is not waited for, as for headers: libraries are written
// by installers, and who changes one under those that run it breaks them first.
#pragma once

#include "base/check.hpp"

#include <filesystem>
#include <string>

namespace kiln::cuda {

// SHA-256 in hex.
[[nodiscard]] result<std::string> content_of(std::filesystem::path const& file);

enum class memory_access : std::uint8_t { read_write, read_only };

// From now on answers are also looked for, and kept, in this directory of the user's own: for the whole process. One that
// others may write to is not believed. An empty path ends it.
void remember_contents_in(std::filesystem::path directory, memory_access how);

// Keeps what could not be kept when it was hashed: the directory above was not there yet.
void keep_contents() noexcept;
[[nodiscard]] bool has_unkept_contents();

}  // namespace kiln::cuda
