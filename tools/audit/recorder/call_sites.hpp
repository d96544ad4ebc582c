// SPDX-License-Identifier: Apache-2.0
//
// What a thread of the program leaves behind when it makes a call that matters: who called, what was moved, how long the
// thread has been on a processor. Threads put samples into a ring without a lock; whoever writes the file takes them out.
#pragma once

#include "recording_file.hpp"
#include "thread_facts.hpp"

#include <atomic>
#include <memory>

namespace kiln::recorder {

struct site_sample {
    std::uint32_t correlation = 0, thread = 0, stack = 0;  // correlation 0: the time on the processor alone
    std::uint64_t time = 0, pointer = 0, bytes = 0, hash = 0, cpu = 0;
};

// Bounded, many producers, one consumer at a time. What finds no room is counted.
class site_ring {
public:
    static constexpr std::size_t room = std::size_t{1} << 16;

    site_ring();
    [[nodiscard]] bool has_room() const { return slots_ != nullptr; }  // false: no memory; nothing else may be called
    bool put(site_sample const& s) noexcept;
    bool take(site_sample& out) noexcept;
    [[nodiscard]] std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

private:
    struct slot {
        std::atomic<std::uint64_t> turn;
        site_sample value;
    };
    std::unique_ptr<slot[]> slots_;
    std::atomic<std::uint64_t> head_{0}, lost_{0};
    std::uint64_t tail_ = 0;
};

// The innermost frames of this thread as a string of the file's: Python's, or where the program has no Python native ones; 0: none.
// Takes the file's lock the first time a place is seen by a thread.
[[nodiscard]] std::uint32_t this_stack(recording_file& file, thread_facts& here);

// At most 4 KiB of `bytes` bytes, taken evenly, mixed under a key that is new in every run; 0: not readable. Nothing
// faults: the kernel reads for us.
[[nodiscard]] std::uint64_t content_hash(void const* data, std::uint64_t bytes, std::uint64_t key) noexcept;

}  // namespace kiln::recorder
