// SPDX-License-Identifier: Apache-2.0
// One job at a time in this process, on a thread of its own: the last resort of the pool.
#pragma once

#include "compile/pool_core.hpp"

namespace kiln::compile {

class in_process_runner {
public:
    // `wake` is rung when the job is done.
    in_process_runner(job_runner run, std::shared_ptr<bell const> wake)
        : run_{std::move(run)}, wake_{std::move(wake)} {}

    // A compile cannot be interrupted: one that still runs when this dies is left to finish for nobody, and the end of the program waits for
    // it, ten seconds at most. errc::cancelled where the program is ending already.
    [[nodiscard]] result<void> start(std::shared_ptr<job const> work);
    [[nodiscard]] bool busy() const noexcept { return slot_ != nullptr; }
    // The outcome, once; nullopt while it runs.
    [[nodiscard]] std::optional<result<product>> take();

private:
    struct slot {
        std::mutex mutex;
        std::optional<result<product>> outcome;
    };
    job_runner run_;
    std::shared_ptr<bell const> wake_;
    std::shared_ptr<slot> slot_;
};

}  // namespace kiln::compile
