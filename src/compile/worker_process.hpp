// SPDX-License-Identifier: Apache-2.0
//
// One kiln-worker child: started, talked to, killed and buried. Used by the pool's thread alone. Only this child is
// ever waited for, so the host program's own children and its SIGCHLD handler are left alone; and where the kernel has
// pidfds no signal can hit a stranger that got the same pid.
#pragma once

#include "base/files.hpp"
#include "compile/pool_policy.hpp"
#include "compile/worker_protocol.hpp"

#include <chrono>
#include <filesystem>
#include <sys/types.h>

namespace kiln::compile {

// The descriptor a worker finds its socket at.
inline constexpr int worker_socket = 3;

// How a child ended. Unknown when the host program ignores SIGCHLD or has waited for all children itself.
struct child_end {
    enum class kind { exited, signalled, unknown };
    kind how = kind::unknown;
    int number = 0;  // exit status or signal

    // By a signal that the program does not send itself: an impatient user, a batch system, the kernel out of memory.
    [[nodiscard]] bool from_outside() const noexcept;
    // "killed by signal 11 (Segmentation fault)"
    [[nodiscard]] std::string describe() const;
};

class worker_process {
public:
    // Spawns the program with a socket at descriptor 3, /dev/null for input, its output kept for last_words(), no other
    // descriptor, default signal handling, the variables of environment.hpp and no other; and sends it `limits`.
    [[nodiscard]] static result<worker_process> start(std::filesystem::path const& program,
                                                      worker_limits const& limits);

    worker_process(worker_process&&) noexcept = default;
    worker_process& operator=(worker_process&&) = delete;
    // The child must have been reaped, or abandoned on purpose.
    ~worker_process() = default;

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }
    [[nodiscard]] int socket() const noexcept { return socket_.get(); }
    // Readable once the child has ended; -1 on kernels without pidfds.
    [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }

    // Queues a frame; flush() writes as much as the socket takes and never blocks.
    [[nodiscard]] result<void> send(frame_kind kind, base::byte_span body);
    [[nodiscard]] result<void> flush();
    [[nodiscard]] bool has_unsent() const noexcept { return sent_ < outbox_.size(); }

    enum class stream { open, more, ended };
    // Takes in the bytes that are there; `more` when it stopped so that one talkative worker cannot hold up the others.
    [[nodiscard]] result<stream> receive();
    [[nodiscard]] result<std::optional<frame>> next_frame() { return parser_.next(); }

    // Since it was started; nullopt where the system does not tell.
    [[nodiscard]] std::optional<worker_time> time_had() const;

    void kill() noexcept;
    // Never blocks; nullopt while the child still runs.
    [[nodiscard]] std::optional<child_end> reap() noexcept;

    // The end of what the child wrote to its standard output and error.
    [[nodiscard]] std::string last_words() const;
    // Keeps what is remembered for last_words() small in a long life.
    void forget_words() noexcept;

private:
    worker_process() = default;

    pid_t pid_ = -1;
    base::file_descriptor socket_;
    base::file_descriptor pidfd_;
    base::file_descriptor words_;
    base::bytes outbox_;
    std::size_t sent_ = 0;
    frame_parser parser_;
};

// Starts the program, hears its hello and lets it go: an error says why it is no worker of this library. For `kiln doctor`.
[[nodiscard]] result<void> try_worker(std::filesystem::path const& program, std::chrono::milliseconds patience);

}  // namespace kiln::compile
