// SPDX-License-Identifier: Apache-2.0
//
// A recording as it was read: the records of each process, with their strings. Reading never fails for what is in a file: what
// cannot be understood is skipped up to the next chunk and counted. Only a version newer than ours is refused.
#pragma once

#include "audit/recording_format.hpp"
#include "base/bytes.hpp"
#include "base/check.hpp"

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln::audit {

// Every string of a recording once; 0 is the empty one.
class string_table {
public:
    string_table() { intern({}); }
    std::uint32_t intern(std::string_view text);
    // "" for what is not in it.
    [[nodiscard]] std::string const& at(std::uint32_t id) const { return id < all_.size() ? *all_[id] : *all_[0]; }
    [[nodiscard]] std::size_t size() const { return all_.size(); }

private:
    std::unordered_map<std::string, std::uint32_t> ids_;
    std::vector<std::string const*> all_;
};

// What one file holds. String fields are ids of the recording's table.
struct process_recording {
    format::process_record about;
    std::vector<format::device_record> devices;
    std::vector<format::context_record> contexts;
    std::vector<format::stream_record> streams;
    std::vector<format::kernel_record> kernels;
    std::vector<format::copy_record> copies;
    std::vector<format::set_record> sets;
    std::vector<format::call_record> calls;
    std::vector<format::wait_record> waits;
    std::vector<format::memory_record> memory;
    std::vector<format::jit_record> jits;
    std::vector<format::overhead_record> overheads;
    std::vector<format::external_record> externals;
    std::vector<format::site_record> sites;
    std::vector<format::cpu_record> cpu;
    std::vector<format::compile_record> compiles;
    std::vector<format::child_record> children;
    std::vector<format::range_record> ranges;
    std::vector<format::dispatch_record> dispatches;
    std::vector<format::note_record> notes;
    std::vector<format::module_record> modules;
    std::vector<format::end_record> ends;  // none: it ended without a word

    std::uint64_t bytes = 0, chunks = 0;
    std::uint64_t skipped_bytes = 0, unknown_chunks = 0, missing_chunks = 0;
    [[nodiscard]] bool recorded() const { return about.pid != 0; }
};

struct recording {
    std::vector<process_recording> processes;  // by pid; what the companion saw of a process lies in the same one
    string_table strings;
    std::string about;                // run.json as it is; empty where there is none
    std::uint64_t foreign_files = 0;  // that are no recordings
};

// errc::unsupported for a version newer than ours, by name; errc::corrupt for what is no recording at all. Adds to `to`.
[[nodiscard]] result<void> parse_process(base::byte_span data, string_table& strings, process_recording& to);

// A directory that the recorder wrote, or one file of it. errc::not_found where there is nothing of ours.
[[nodiscard]] result<recording> read_recording(std::filesystem::path const& from);

}  // namespace kiln::audit
