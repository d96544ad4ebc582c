// SPDX-License-Identifier: Apache-2.0
//
// A program's line to the workers of its `kiln run`, which listens at a socket and gives every caller a process of its own. The
// program has no child and no thread by it. Safe from any thread and after fork(). Whatever goes wrong means that there is no
// worker, and the program compiles itself.
#pragma once

#include "base/files.hpp"
#include "base/fork_guard.hpp"
#include "compile/worker_protocol.hpp"
#include "intercept/foreign_job.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace kiln::intercept {

struct worker_answer {
    foreign_product product;
    int maker = 0;  // pid
};

class worker_line {
public:
    // Empty: there are no workers.
    explicit worker_line(std::string address) : address_{std::move(address)} {}

    // Blocks as long as the compile takes. Where all workers are busy there are some more for who has nothing else (`wait`), which waits for
    // one of those, too: for a minute at most. nullopt: compile it yourself.
    enum class busy { give_up, wait };
    [[nodiscard]] std::optional<worker_answer> compile(foreign_job const& work, busy what = busy::give_up);

private:
    struct connection;
    struct attempt {
        std::shared_ptr<connection> line;  // null: there is none
        bool is_busy = false;              // because all of them are
    };
    [[nodiscard]] std::shared_ptr<connection> take_idle();
    [[nodiscard]] attempt connect(busy what);
    [[nodiscard]] std::shared_ptr<connection> connect_or_wait(busy what);
    void give_back(std::shared_ptr<connection> one);

    std::string address_;
    std::atomic<bool> nobody_answers_{false};
    base::forkable_mutex mutex_;
    std::vector<std::shared_ptr<connection>> idle_;
};

}  // namespace kiln::intercept
