// SPDX-License-Identifier: Apache-2.0
//
// A job that broke its compiler, kept in a file: a part for people (what was compiled, for what, how it ended) and the
// encoded job, so that it can be run again. The layout is in docs/formats/reproduction.md.
#pragma once

#include "compile/job.hpp"

#include <filesystem>

namespace kiln::compile {

inline constexpr std::string_view reproduction_suffix = ".kiln-repro";

struct reproduction {
    job work;
    std::string reason;      // one line: "killed by signal 11 (Segmentation fault)"
    std::string last_words;  // what the compiler wrote before it died
};

// What such a file holds.
[[nodiscard]] base::bytes encode(reproduction const& r);
// Writes into `directory`, made if need be, under a name made of the job's digest: the same job again replaces its
// file. Of more than `most` files the oldest are removed. Returns the file's path.
[[nodiscard]] result<std::filesystem::path> write_reproduction(std::filesystem::path const& directory,
                                                               reproduction const& r, std::size_t most = 16);
// Only the job; the part for people is not read back. `origin` is named in errors.
[[nodiscard]] result<job> decode_reproduction(base::byte_span data, std::string_view origin);
[[nodiscard]] result<job> read_reproduction(std::filesystem::path const& file);

}  // namespace kiln::compile
