// SPDX-License-Identifier: Apache-2.0
// What the tests of the worker pool share: a pool on the fault worker, jobs from a line of text, waiting with a deadline.
#pragma once

#include "base/files.hpp"
#include "compile/worker_pool.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <future>
#include <thread>

namespace kiln::compile::testing {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int slowness = 10;
#else
inline constexpr int slowness = 1;
#endif

// Polls; false if it has not come true within the deadline.
template <class Predicate>
[[nodiscard]] bool eventually(Predicate holds, std::chrono::milliseconds within = 30s) {
    auto const until = std::chrono::steady_clock::now() + within;
    while (!holds()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

// Zombies count as gone: whoever should reap them is not under test.
[[nodiscard]] inline bool is_running(pid_t pid) {
    std::ifstream file{fmt::format("/proc/{}/stat", pid)};
    std::string line;
    if (!std::getline(file, line)) return false;
    auto const state = line[line.rfind(')') + 2];
    return state != 'Z' && state != 'X';
}

// kill(2) that cannot hit a process group or everybody when something before it went wrong.
inline void send_signal(pid_t pid, int signal) {
    ASSERT_GT(pid, 1);
    ::kill(pid, signal);
}

inline fs::path const& fault_worker() {
    static fs::path const path = fs::path{KILN_TEST_BIN_DIR} / "kiln-test-fault_worker";
    return path;
}

// The fault worker's images are lines of text: only what names the answer is compared.
inline result<void> check_names(job const& j, product const& made) {
    if (made.unit == j.name() && made.target == std::get<compile_job>(j.task).target) return {};
    return fail(errc::corrupt, "worker protocol: the answer has another name or target");
}

inline job make_job(std::string name, std::string source) {
    return {{}, compile_job{{.name = std::move(name), .source = std::move(source)}, target::parse("sm_90").value()}};
}

using outcome = result<product>;
[[nodiscard]] inline std::string image_text(outcome const& o) { return std::string{base::as_text(o.value().image)}; }

class worker_pool_test : public ::testing::Test {
protected:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-pool").value();
    event_log events_;
    std::unique_ptr<worker_pool> pool_;

    [[nodiscard]] fs::path scratch(std::string_view name) const { return scratch_.path() / name; }
    [[nodiscard]] pool_options options(int workers) const {
        pool_options o;
        o.check = check_names;
        o.workers = workers;
        o.worker = fault_worker();
        o.compile_timeout = 60s;
        o.reproductions = scratch("repro");
        return o;
    }
    void open(pool_options o) { pool_ = std::make_unique<worker_pool>(std::move(o), events_); }

    std::future<outcome> submit(job work, priority how = priority::blocking, worker_pool::ticket* ticket = nullptr) {
        auto promise = std::make_shared<std::promise<outcome>>();
        auto out = promise->get_future();
        auto const id = pool_->submit(std::move(work), how, [promise](outcome o) { promise->set_value(std::move(o)); });
        if (ticket != nullptr) *ticket = id;
        return out;
    }
    std::future<outcome> submit(std::string source) { return submit(make_job("unit", std::move(source))); }

    // Jobs that hold their workers until release().
    [[nodiscard]] std::string hold() const {
        fs::create_directories(scratch("hold"));
        return "hold " + scratch("hold").native();
    }
    void release() const { std::ofstream{scratch("hold") / "go"}.put('\n'); }
    // Pids of the workers that have come to the point of holding.
    [[nodiscard]] std::vector<pid_t> held() const {
        std::vector<pid_t> out;
        for (auto const& e : fs::directory_iterator{scratch("hold")}) {
            if (e.path().filename() != "go") out.push_back(std::stoi(e.path().filename()));
        }
        return out;
    }
    // A program that starts badly: see fault_worker.cpp.
    [[nodiscard]] fs::path worker_named(std::string_view name) const {
        fs::create_symlink(fault_worker(), scratch(name));
        return scratch(name);
    }
    [[nodiscard]] std::vector<event> events(event_kind kind) const {
        auto all = events_.recent();
        std::erase_if(all, [&](event const& e) { return e.kind != kind; });
        return all;
    }
};

}  // namespace kiln::compile::testing
