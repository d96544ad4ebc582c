// SPDX-License-Identifier: Apache-2.0
// Many copies of one program that are killed, stopped and continued at random, and watched for progress.
#pragma once

#include "base/clock.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <random>
#include <spawn.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

extern char** environ;

namespace kiln::test {

// What all copies share: a mapped file of zeros, which must be the right start for every member. Null if that fails.
template <class Board>
Board* map_board(std::filesystem::path const& file) {
    int const fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(Board)) != 0) return nullptr;
    auto* const at = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    return at == MAP_FAILED ? nullptr : static_cast<Board*>(at);
}

class crowd {
public:
    struct plan {
        std::string program;
        unsigned processes = 0;
        std::chrono::seconds length{};
        std::chrono::seconds no_progress_limit{};
        // Of the i-th copy, with the seconds that are left.
        std::function<std::vector<std::string>(unsigned i, long seconds)> arguments;
        // Of the i-th copy: grows while it works.
        std::function<std::uint64_t(unsigned i)> progress;
        // What waitpid said of one that ended: nullptr, or what is wrong with that.
        std::function<char const*(int status)> complaint;
    };

    explicit crowd(plan p) : plan_{std::move(p)}, pids_(plan_.processes) {
        seen_.resize(plan_.processes, {0, base::clock::now()});
    }

    void begin() {
        end_ = base::clock::now() + plan_.length;
        for (unsigned i = 0; i < plan_.processes; ++i) start(i);
    }

    // Time is not over, and nothing has failed.
    [[nodiscard]] bool goes_on() const { return base::clock::now() < end_ && !failed_; }

    // Kills one and starts it again, or stops one; continues the stopped now and then.
    void disturb() {
        auto const i = static_cast<unsigned>(random_() % plan_.processes);
        if (random_() % 8 == 0) {
            ::kill(pids_[i], SIGSTOP);
            stopped_.push_back(i);
            ++stops_;
        } else {
            ::kill(pids_[i], SIGKILL);
            ++kills_;
            int status = 0;
            ::waitpid(pids_[i], &status, 0);
            judge(status);
            start(i);
        }
        if (stopped_.size() > 4 || random_() % 16 == 0) resume();
    }

    // Starts again what ended by itself.
    void reap() {
        for (unsigned i = 0; i < plan_.processes; ++i) {
            int status = 0;
            if (::waitpid(pids_[i], &status, WNOHANG) != pids_[i]) continue;
            judge(status);
            start(i);
        }
    }

    void look() {
        for (unsigned i = 0; i < plan_.processes; ++i) {
            auto const progress = plan_.progress(i);
            bool const stopped = std::find(stopped_.begin(), stopped_.end(), i) != stopped_.end();
            if (progress != seen_[i].first || stopped) seen_[i] = {progress, base::clock::now()};
            else if (base::clock::now() - seen_[i].second > plan_.no_progress_limit)
                fail("a program makes no progress");
        }
    }

    void stop_all() {
        resume();
        auto const until = base::clock::now() + plan_.no_progress_limit;
        for (auto const pid : pids_) {
            int status = 0;
            while (::waitpid(pid, &status, WNOHANG) == 0) {
                if (base::clock::now() > until || failed_) {
                    if (!failed_) fail("a program does not end");
                    ::kill(pid, SIGKILL);
                    ::waitpid(pid, &status, 0);
                    break;
                }
                std::this_thread::sleep_for(std::chrono::milliseconds{5});
            }
            judge(status);
        }
    }

    void fail(char const* why) {
        std::printf("failed: %s\n", why);
        failed_ = true;
    }
    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] unsigned long kills() const { return kills_; }
    [[nodiscard]] unsigned long stops() const { return stops_; }
    [[nodiscard]] std::minstd_rand& random() { return random_; }

private:
    void start(unsigned i) {
        auto const left = std::chrono::duration_cast<std::chrono::seconds>(end_ - base::clock::now()).count() + 1;
        auto text = plan_.arguments(i, std::max<long>(left, 1));
        text.insert(text.begin(), plan_.program);
        std::vector<char*> argv;
        for (auto& t : text) argv.push_back(t.data());
        argv.push_back(nullptr);
        if (::posix_spawn(&pids_[i], plan_.program.c_str(), nullptr, nullptr, argv.data(), environ) != 0)
            fail("cannot start a process");
        seen_[i] = {plan_.progress(i), base::clock::now()};
    }

    void resume() {
        for (auto const s : stopped_) {
            ::kill(pids_[s], SIGCONT);
            seen_[s].second = base::clock::now();
        }
        stopped_.clear();
    }

    void judge(int status) {
        if (auto const* const wrong = plan_.complaint(status)) fail(wrong);
    }

    plan plan_;
    std::vector<::pid_t> pids_;
    std::vector<std::pair<std::uint64_t, base::time_point>> seen_;
    std::vector<unsigned> stopped_;
    std::minstd_rand random_{12345};
    base::time_point end_{};
    unsigned long kills_ = 0, stops_ = 0;
    bool failed_ = false;
};

}  // namespace kiln::test
