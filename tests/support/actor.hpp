// SPDX-License-Identifier: Apache-2.0
// Starts kiln-test-store_actor and talks to it.
#pragma once

#include "base/clock.hpp"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

extern char** environ;

namespace kiln::test {

class actor {
public:
    explicit actor(std::vector<std::string> arguments, std::vector<std::string> variables = {},
                   std::string const& program = KILN_TEST_BIN_DIR "/kiln-test-store_actor") {
        int in[2], out[2];
        if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) return;
        arguments.insert(arguments.begin(), program);
        std::vector<char*> argv, envp;
        for (auto& a : arguments) argv.push_back(a.data());
        argv.push_back(nullptr);
        for (auto& v : variables) envp.push_back(v.data());
        for (char** v = environ; *v != nullptr; ++v) envp.push_back(*v);
        envp.push_back(nullptr);
        ::posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        if (::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), envp.data()) != 0) pid_ = -1;
        ::posix_spawn_file_actions_destroy(&actions);
        ::close(in[0]);
        ::close(out[1]);
        in_ = in[1];
        out_ = out[0];
    }
    actor(actor&& other) noexcept
        : pid_{std::exchange(other.pid_, -1)}, in_{std::exchange(other.in_, -1)}, out_{std::exchange(other.out_, -1)} {}
    actor& operator=(actor&&) = delete;
    ~actor() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            (void)wait();
        }
        if (in_ >= 0) ::close(in_);
        if (out_ >= 0) ::close(out_);
    }

    [[nodiscard]] ::pid_t pid() const { return pid_; }
    void signal(int number) { ::kill(pid_, number); }
    void go() { (void)!::write(in_, "\n", 1); }
    // One line of its output; empty at the end.
    [[nodiscard]] std::string line() {
        std::string text;
        for (char c = 0; ::read(out_, &c, 1) == 1 && c != '\n';) text += c;
        return text;
    }
    // As waitpid gives it.
    [[nodiscard]] int wait() {
        int status = -1;
        if (pid_ > 0) ::waitpid(std::exchange(pid_, -1), &status, 0);
        return status;
    }

private:
    ::pid_t pid_ = -1;
    int in_ = -1, out_ = -1;
};

}  // namespace kiln::test
