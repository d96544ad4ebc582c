// SPDX-License-Identifier: Apache-2.0
// A few threads for what is dear about a batch: digests and signatures of what came. The reactor goes on receiving meanwhile. Started
// by the first piece of work, never without one.
#pragma once

#include "remote/reactor.hpp"

namespace kiln::remote {

class check_threads {
public:
    explicit check_threads(reactor& loop) noexcept : loop_{loop} {}
    ~check_threads();
    check_threads(check_threads const&) = delete;
    check_threads& operator=(check_threads const&) = delete;

    // `work` on one of them, then `then` on the reactor's thread. Where no thread can be had `work` runs here.
    void run(reactor::task work, reactor::task then);

private:
    struct piece {
        reactor::task work, then;
    };
    void serve() noexcept;

    reactor& loop_;
    std::mutex mutex_;  // the members below
    std::condition_variable changed_;
    std::deque<piece> waiting_;
    std::vector<std::thread> threads_;
    std::size_t idle_ = 0;
    bool ends_ = false;
};

}  // namespace kiln::remote
