// SPDX-License-Identifier: Apache-2.0
//
// A recording as it was read: the records of each process, with their strings. Reading never fails for what is in a file: what
// cannot be understood is skipped up to the next chunk and counted. Only a version newer than ours is refused.
#pragma once

#include "audit/recording_format.hpp"
#include "base/bytes.hpp"
#include "base/check.hpp"

#include <filesystem>
#include <map>
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

// Records that there may be millions of: in blocks, so that growing copies nothing and what has been taken out is given back at once.
template <class Record>
class record_blocks {
public:
    void push_back(Record const& r) {
        if (size_ % per_block == 0) blocks_.emplace_back().reserve(size_ == 0 ? 64 : per_block);
        blocks_.back().push_back(r);
        ++size_;
    }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] Record& back() { return blocks_.back().back(); }
    [[nodiscard]] Record const& operator[](std::size_t i) const { return blocks_[i / per_block][i % per_block]; }
    // Each in turn; none is left afterwards.
    template <class Visit>
    void consume(Visit const& visit) {
        for (auto& block : blocks_) {
            for (auto const& r : block) visit(r);
            std::vector<Record>{}.swap(block);
        }
        blocks_.clear();
        size_ = 0;
    }

private:
    // So large that the allocator maps each by itself: a smaller one it would keep when it is given back.
    static constexpr std::size_t per_block = (std::size_t{40} << 20) / sizeof(Record);
    std::vector<std::vector<Record>> blocks_;
    std::size_t size_ = 0;
};

// What one file holds. String fields are ids of the recording's table.
struct process_recording {
    std::uint32_t pid = 0;  // by the name of its file
    format::process_record about;
    std::vector<format::device_record> devices;
    std::vector<format::context_record> contexts;
    std::vector<format::stream_record> streams;
    record_blocks<format::kernel_record> kernels;
    std::vector<format::copy_record> copies;
    std::vector<format::set_record> sets;
    record_blocks<format::call_record> calls;
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

// Lines of source, from `first` on.
struct kept_source {
    int first = 0;
    std::vector<std::string> lines;
};
using kept_sources = std::map<std::pair<std::string, int>, kept_source>;  // around a line of a file

struct recording {
    std::vector<process_recording> processes;  // by pid; what the companion saw of a process lies in the same one
    string_table strings;
    kept_sources sources;
    std::string about;               // run.json as it is; empty where there is none
    std::uint64_t spoilt_files = 0;  // that are no recordings, could take no more, or ought to be there and are not
    bool has_end = true;             // run.json, which is written last, was there: this is all of it
};

// errc::unsupported for a version newer than ours, by name; errc::corrupt for what is no recording at all. Adds to `to`.
[[nodiscard]] result<void> parse_process(base::byte_span data, string_table& strings, process_recording& to);

// A directory that the recorder wrote, or one file of it. errc::not_found where there is nothing of ours.
[[nodiscard]] result<recording> read_recording(std::filesystem::path const& from);

}  // namespace kiln::audit
