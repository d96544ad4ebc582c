// SPDX-License-Identifier: Apache-2.0
//
// A profile: what a process needed, in order of first use. The file is a header and a row of records, each with its length
// and a check, appended in one write(2) each: whatever a killed process leaves behind can be read up to its last whole
// record. Layout: docs/formats/profile.md.
#pragma once

#include "engine/recipe.hpp"

#include <filesystem>
#include <map>

namespace kiln::warmup {

struct process_note {
    std::string version;  // of Kiln
    std::string program;
    std::uint64_t pid = 0;
    std::uint64_t unix_seconds = 0;
};

struct profile_use {
    base::digest recipe;
    std::string arch;      // "sm_90"
    std::string kind;      // "cubin"
    std::string key;       // of the artifact; empty where not known
    std::string from;      // tier of origin
    std::uint64_t ns = 0;  // of first use, since the process began to record
    double compile_ms = 0;
    double waited_ms = 0;
};

struct profile {
    std::vector<process_note> processes;
    std::map<base::digest, engine_detail::recipe> recipes;
    std::vector<profile_use> uses;  // in order of first use; one per recipe, architecture and kind

    // What was wrong with the files this came from, and did no harm.
    std::uint64_t torn_bytes = 0;       // at the end: the process was killed while it wrote
    std::uint64_t unknown_records = 0;  // of a newer version

    [[nodiscard]] bool has(base::digest const& recipe, std::string_view arch, std::string_view kind) const;
    // What `other` used first comes first where both have it; costs are the larger ones.
    void merge(profile const& other);
    // The largest compile time known of each recipe that was used, whatever the architecture.
    [[nodiscard]] std::map<base::digest, double> costs_ms() const;
};

[[nodiscard]] base::bytes encode_header();
[[nodiscard]] base::bytes encode(process_note const& what);
[[nodiscard]] base::bytes encode(engine_detail::recipe const& what);
[[nodiscard]] base::bytes encode(profile_use const& what);
[[nodiscard]] base::bytes encode(profile const& what);

// errc::corrupt if it is no profile at all, errc::unsupported for a newer format; a damaged tail is counted and left out.
[[nodiscard]] result<profile> decode_profile(base::byte_span data, std::string_view origin);

// errc::not_found where there is no such file.
[[nodiscard]] result<profile> read_profile(std::filesystem::path const& file);
[[nodiscard]] result<void> write_profile(std::filesystem::path const& file, profile const& what);

// The file itself and the recordings beside it, of processes that found it taken: FILE.<pid>-<random>.
[[nodiscard]] std::vector<std::filesystem::path> recordings_of(std::filesystem::path const& file);
// All of them as one; an error only if none of them can be read. Empty where there are none.
[[nodiscard]] result<profile> read_recordings(std::filesystem::path const& file);

}  // namespace kiln::warmup
