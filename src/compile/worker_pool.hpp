// SPDX-License-Identifier: Apache-2.0
//
// Compiling in worker processes. NVRTC serialises inside a process and may crash, hang or eat memory; so jobs go to
// kiln-worker children over socket pairs, one job at a time each, as many children as cores and free memory allow.
// One thread of the pool owns all children: it starts them, talks to them and buries them. Nothing is started before
// the first submit. A worker that crashes, hangs or runs out of memory costs one retry in a fresh worker; then the job
// fails with errc::worker_failed (errc::timeout, errc::out_of_memory) and a reproduction file. A worker killed from
// outside says nothing about its job, which is tried a few times more. Where no worker can be started at all the job
// runs in this process, with a fell_back event. After fork() the child's pool starts afresh, with nothing queued. Workers see the
// files that the program sees, with its rights: where it has changed its root, its mounts or its user, it gets others.
#pragma once

#include "compile/job.hpp"

#include <kiln/event.hpp>
#include <kiln/pending.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

namespace kiln::compile {

using kiln::priority;

using job_runner = std::function<result<product>(job const&)>;

// In a worker: with what it keeps from job to job.
using worker_runner = std::function<result<product>(precompiled_headers&, job const&)>;

using reply_check = std::function<result<void>(job const&, product const&)>;

struct pool_options {
    int workers = -1;                   // -1: by cores and free memory; 0: always in this process
    std::filesystem::path worker = {};  // empty: looked for beside the library and the executable
    std::uint64_t worker_memory = std::uint64_t{4}
                                  << 30;  // bytes of data one worker may map, beyond the program itself
    std::uint64_t precompiled =
        std::uint64_t{512} << 20;  // bytes of precompiled headers in one worker, if there is memory for it; 0: none
    std::chrono::milliseconds compile_timeout{120'000};  // of CPU time: see patience in pool_policy.hpp
    std::chrono::milliseconds start_timeout{10'000};     // a worker that has not said hello by then never will
    std::chrono::milliseconds idle_timeout{10'000};      // idle workers are retired after this
    std::filesystem::path reproductions = {};            // where reproduction files go; empty: none are written
    job_runner in_process = run_job;                     // for jobs no worker can be had for
    reply_check check = check_product;  // of what a worker sent; one that lies is a worker that crashed
};

// Called on a thread of the pool, with no lock held; must be quick and must not throw.
struct job_notices {
    std::function<void(int)> started = {};         // each time a process takes the job, with its pid
    std::function<void(header_use)> headers = {};  // before the completion, of jobs a worker has done
    // The same, of those that do not compile: what was read or looked for until then. Not called where nobody knows.
    std::function<void(std::vector<dependency>)> read = {};
};

class worker_pool {
public:
    worker_pool(pool_options options, event_log& events);
    // Outstanding jobs end with errc::cancelled; workers are killed; takes milliseconds, whatever they were doing.
    ~worker_pool();
    // The same, and the pool stays to be asked: whatever is submitted from now on ends with errc::cancelled.
    void stop() noexcept;
    worker_pool(worker_pool const&) = delete;
    worker_pool& operator=(worker_pool const&) = delete;

    using ticket = std::uint64_t;
    // Called once, on a thread of the pool (for a withdrawn job on the caller's), with no lock held; must be quick and
    // must not throw.
    using completion = std::function<void(result<product>)>;

    // Never blocks on a compiler. Relative directories in the job mean this process's working directory at the call.
    ticket submit(job work, priority how, completion done, job_notices tell = {});
    // Raises (never lowers) a job. One that runs goes on, unless it is raised to blocking and others leave its worker no time,
    // which stepped back for them: then it begins anew in another.
    void raise(ticket which, priority how);
    // Withdraws a queued job (completion gets errc::cancelled); a running one is left to finish. True if it was withdrawn.
    bool cancel(ticket which);

    struct worker_state {
        int pid = 0;
        bool busy = false;
        std::string unit;  // what it compiles now
        std::uint64_t jobs_done = 0;
        std::int64_t busy_ns = 0;  // spent on jobs so far, this one included
    };
    struct counters {
        std::uint64_t submitted = 0, done = 0, failed = 0, retried = 0, started = 0, died = 0, in_process = 0,
                      queued = 0;
        std::uint64_t headers_made = 0, headers_reused = 0;  // jobs that made, that used a precompiled header
        counters& operator+=(counters const& more) noexcept;
    };
    [[nodiscard]] std::vector<worker_state> workers() const;
    [[nodiscard]] counters count() const;
    // How many workers there may be at once; decided at the first need.
    [[nodiscard]] int capacity() const;
    // The program that would be started; errc::not_found names where it was looked for.
    [[nodiscard]] static result<std::filesystem::path> find_worker(std::filesystem::path const& configured);

private:
    struct state;
    std::unique_ptr<state> state_;
};

// The other side: the whole life of a kiln-worker process on this socket, jobs run by `run`. Changes the process (working
// directory, limits, priority) and ends it at once when the other end is closed. Returns its exit status.
[[nodiscard]] int serve_worker(int socket, worker_runner const& run = run_job_with);

}  // namespace kiln::compile
