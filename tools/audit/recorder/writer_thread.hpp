// SPDX-License-Identifier: Apache-2.0
//
// A thread with a table of descriptors of its own, in which files are written for the others. A descriptor of ours in the program's table
// would be its lowest for a moment: what it opens then gets another number than it had alone, and what it closes is ours.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sys/types.h>

namespace kiln::recorder {

class writer_thread {
public:
    // Once, by who has blocked all signals; it never ends. Nobody waits for it: who writes before it is there, or where it cannot be (no
    // thread, an older system), does so by itself.
    void begin();

    // Calls `write(of)` there, and comes back when it has. By one at a time.
    void call(void (*write)(void*), void* of);

    // Not in a child of fork().
    [[nodiscard]] bool is_there() const;

private:
    static constexpr std::uint32_t none = 0, idle = 1, asked = 2;
    static void* serve(void* self);
    void wait_while(std::uint32_t is);
    void set(std::uint32_t to);

    std::atomic<std::uint32_t> state_{none};
    ::pid_t owner_ = 0;
    void (*write_)(void*) = nullptr;
    void* of_ = nullptr;
};

}  // namespace kiln::recorder
