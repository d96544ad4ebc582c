// SPDX-License-Identifier: Apache-2.0
//
// The file a process records itself into: records gathered by kind, written as chunks of at most 1 MiB, one open, write and close each: a
// program that closes every descriptor must not find our bytes in the file it opens next. A thread with descriptors of its own does it. The file only grows and needs no end, so a killed
// process leaves all but what was still gathered. Guarded by its own lock; nothing here is called by a thread of the program while it
// holds CUDA's locks, but for a call site seen the first time.
#pragma once

#include "audit/recording_format.hpp"
#include "writer_thread.hpp"

#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace kiln::recorder {

namespace format = audit::format;

class recording_file {
public:
    // Exclusive, 0600, no links followed. False: it could not be made; errno says why.
    bool make(char const* directory, char const* prefix, unsigned pid);

    // For the time of one batch of records.
    [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock{mutex_}; }

    // All below: by who holds the lock.
    std::uint32_t intern(std::string_view text);
    template <class Record>
    void add(Record const& r, std::uint64_t time) {
        constexpr auto size = format::bytes_of<Record>();
        auto& to = batches_[static_cast<std::size_t>(Record::kind)];
        if (to.contents.size() + size > format::most_chunk_bytes) flush();
        to.contents.resize(to.contents.size() + size);
        format::write_record(r, reinterpret_cast<unsigned char*>(to.contents.data()) + to.contents.size() - size);
        if (time == 0) return;
        if (to.first == 0 || time < to.first) to.first = time;
        if (time > to.last) to.last = time;
    }
    void flush();

    // Beside the file, that it is not whole: it cannot always say so itself. Needs no lock and no memory.
    void mark_full() const noexcept;

    // Bytes that found no room: the disk is full, or the recording is as large as it may be.
    // The process has locked itself in since: nothing more can be written.
    [[nodiscard]] bool is_locked_in() const;
    [[nodiscard]] std::uint64_t discarded() const { return discarded_; }

private:
    struct batch {
        std::string contents;
        std::uint64_t first = 0, last = 0;
    };
    void write_chunk(format::chunk type, batch& b);
    // False: nothing of it is in the file, or only a part, and no more will be.
    bool append(std::string_view data);
    struct piece;
    static void write(void* piece);

    writer_thread writer_;
    std::mutex mutex_;
    std::array<batch, static_cast<std::size_t>(format::chunk::last) + 1> batches_;
    struct text_hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };
    std::unordered_map<std::string, std::uint32_t, text_hash, std::equal_to<>> strings_;
    std::string path_, mark_, out_;
    std::uint64_t sequence_ = 0, written_ = 0, discarded_ = 0;
    bool full_ = false;
    int lock_ = 0;  // of the process, when it began
};

}  // namespace kiln::recorder
