// SPDX-License-Identifier: Apache-2.0
// What the callers of a worker_pool and its thread share, and the bell that wakes the thread.
#pragma once

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/quiet_thread.hpp"
#include "compile/job_queue.hpp"
#include "compile/viewpoint.hpp"

#include <mutex>
#include <thread>

namespace kiln::compile {

// An eventfd: ring() from anywhere, any number of times; the thread that polls fd() clears it.
class bell {
public:
    [[nodiscard]] static result<bell> make();
    void ring() const noexcept;
    void clear() const noexcept;
    [[nodiscard]] int fd() const noexcept { return fd_.get(); }

private:
    explicit bell(base::file_descriptor fd) noexcept : fd_{std::move(fd)} {}
    base::file_descriptor fd_;
};

// What workers() tells, as the pool's thread last left it.
struct worker_snapshot {
    worker_pool::worker_state state;
    base::time_point busy_since{};
};

struct pool_core {
    pool_core(pool_options o, event_log& log) : options{std::move(o)}, events{log} {}

    pool_options const options;
    event_log& events;
    // Decided at the first call, by whoever comes first: reading what the machine has takes half a millisecond.
    [[nodiscard]] int capacity();
    // Bytes of precompiled headers for each of them; decided with the capacity.
    [[nodiscard]] std::uint64_t precompiled();
    pid_t const owner = ::getpid();  // after fork() all of this belongs to somebody else

    mutable std::mutex mutex;  // guards what follows
    job_queue queue;
    std::vector<worker_pool::ticket> waited_for;  // raised when they had left the queue
    bool stopping = false;
    worker_pool::counters counters;
    std::vector<worker_snapshot> workers;
    std::shared_ptr<bell const> wake;  // made with the thread, at the first submit
    std::thread thread;
    std::optional<file_view> seen_from;  // by whoever came first, and so by the thread that he started
    ::pid_t thread_id = 0;               // once it runs
    // Whether workers of this core see the files that the calling thread sees: its thread starts them, and mounts and roots can be a
    // thread's own. The first who asks decides.
    [[nodiscard]] bool sees(file_view const& here);

    std::once_flag decided;
    int most_workers = 0;
    std::uint64_t most_precompiled = 0;

    template <class Change>
    void count(Change change) {
        std::lock_guard const lock{mutex};
        change(counters);
    }
};

// The life of the pool's thread: until core->stopping.
void run_dispatcher(std::shared_ptr<pool_core> core);

}  // namespace kiln::compile
