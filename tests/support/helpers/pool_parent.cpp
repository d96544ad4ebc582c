// SPDX-License-Identifier: Apache-2.0
//
// A host program to be killed: pool_parent WORKER COUNT SOURCE ENDING. Submits COUNT jobs of this source, and when all
// workers are busy ends as told: `wait` for a signal, `exit` with the pool alive, `destroy` the pool and then exit,
// `static` leave it to the static destructors. Prints "pids ..." when the workers are busy and "leaving <monotonic ns>"
// just before it goes.
#include "base/clock.hpp"
#include "compile/worker_pool.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

using namespace kiln;
using namespace kiln::compile;

std::unique_ptr<worker_pool>& static_pool() {
    static std::unique_ptr<worker_pool> pool;
    return pool;
}

void wait_until_busy(worker_pool const& pool, std::size_t count) {
    for (;;) {
        auto const workers = pool.workers();
        std::size_t busy = 0;
        for (auto const& w : workers) busy += w.busy ? 1 : 0;
        if (busy >= count) {
            std::printf("pids");
            for (auto const& w : workers) std::printf(" %d", w.pid);
            std::printf("\n");
            std::fflush(stdout);
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    int const count = std::atoi(argv[2]);
    std::string const ending = argv[4];
    auto* const pool = new worker_pool{{.workers = count, .worker = argv[1]}, event_log::process()};
    if (ending == "static") static_pool().reset(pool);
    for (int i = 0; i < count; ++i) {
        job work{{}, compile_job{{.name = "held", .source = argv[3]}, target::parse("sm_90").value()}};
        pool->submit(std::move(work), priority::blocking, [](result<product> const&) {});
    }
    wait_until_busy(*pool, static_cast<std::size_t>(count));
    if (ending == "wait") ::pause();
    std::printf("leaving %lld\n", static_cast<long long>(base::now_ns()));
    std::fflush(stdout);
    if (ending == "destroy") delete pool;
    std::exit(0);
}
