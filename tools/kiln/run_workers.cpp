// SPDX-License-Identifier: Apache-2.0
#include "run_workers.hpp"

#include "compile/environment.hpp"
#include "compile/host_resources.hpp"
#include "compile/worker_pool.hpp"
#include "compile/worker_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::cli {

namespace {

constexpr int most_waiting = 128;

base::file_descriptor listen_at(std::filesystem::path const& address) {
    ::sockaddr_un at{};
    at.sun_family = AF_UNIX;
    if (address.native().size() >= sizeof at.sun_path) return {};
    std::memcpy(at.sun_path, address.c_str(), address.native().size() + 1);
    base::file_descriptor out{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!out || ::bind(out.get(), reinterpret_cast<::sockaddr const*>(&at), sizeof at) != 0) return {};
    return ::listen(out.get(), most_waiting) == 0 ? std::move(out) : base::file_descriptor{};
}

bool is_of_this_user(int socket) {
    ::ucred who{};
    ::socklen_t size = sizeof who;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == ::geteuid();
}

// -1: it cannot be started.
pid_t start_worker(worker_program const& what, int caller, std::vector<std::string> variables) {
    base::file_descriptor const high{::fcntl(caller, F_DUPFD_CLOEXEC, compile::worker_socket + 1)};
    if (!high) return -1;
    ::posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    for (int const fd : {STDOUT_FILENO, STDERR_FILENO})
        ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, high.get(), compile::worker_socket);
#if __GLIBC_PREREQ(2, 34)
    // What our own parent left open is not kept open by a worker.
    ::posix_spawn_file_actions_addclosefrom_np(&files, compile::worker_socket + 1);
#endif
    ::posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    // A terminal stops the program, or does not, if that is of another mind. It must not wait for a worker that was stopped.
    ::sigset_t blocked, all;
    ::sigemptyset(&blocked);
    for (int const signal : {SIGTSTP, SIGTTIN, SIGTTOU}) ::sigaddset(&blocked, signal);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &blocked);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::string name = what.file.native(), how = "--foreign";
    std::array<char*, 3> const arguments{name.data(), what.is_for_this_alone ? nullptr : how.data(), nullptr};
    std::vector<char*> environment;
    for (auto& one : variables) environment.push_back(one.data());
    environment.push_back(nullptr);
    pid_t pid = -1;
    if (::posix_spawn(&pid, name.c_str(), &files, &attributes, arguments.data(), environment.data()) != 0) pid = -1;
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    return pid;
}

std::vector<std::string> worker_environment(std::vector<std::string> const& programs) {
    std::vector<char const*> pointers;
    for (auto const& one : programs) pointers.push_back(one.c_str());
    pointers.push_back(nullptr);
    return compile::environment_for_workers(pointers.data(), compile::trust_of_process());
}

// A small one that does nothing else lies beside the worker where it could be built: it starts sooner.
worker_program find_program(std::filesystem::path const& named) {
    auto const worker = compile::worker_pool::find_worker(named).value_or(std::filesystem::path{});
    auto const small = worker.parent_path() / "kiln-foreign-worker";
    if (named.empty() && !worker.empty() && ::access(small.c_str(), X_OK) == 0) return {small, true};
    return {worker, false};
}

}  // namespace

run_workers::run_workers(std::filesystem::path const& folder, base::config const& settings) {
    auto const& wanted = settings.text("KILN_WORKERS");
    if (!wanted.empty()) most_ = static_cast<std::size_t>(std::max(0, std::atoi(wanted.c_str())));
    if (folder.empty() || (!wanted.empty() && most_ == 0)) return;
    named_ = settings.text("KILN_WORKER");
    address_ = folder / fmt::format("door-{}-{}", ::getpid(), base::random_name());
    door_ = listen_at(address_);
    is_there_ = static_cast<bool>(door_);
}

run_workers::~run_workers() { take_door_away(); }

void run_workers::bury() {
    std::erase_if(alive_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

// For one there is always room: what this machine has is read while that one starts.
bool run_workers::has_room(need how) {
    if (alive_.empty()) return true;
    if (most_ == 0) most_ = static_cast<std::size_t>(compile::fitting_workers(compile::host_resources::read()));
    return alive_.size() < (how == need::has_no_other ? 2 * most_ : most_);
}

// Who finds all of them busy or no worker at all, or is somebody else, is hung up on.
void run_workers::answer_door(std::vector<std::string> const& environment) {
    bury();
    // Most programs never call.
    if (!program_) program_ = find_program(named_);
    for (;;) {
        ::sockaddr_un from{};
        ::socklen_t size = sizeof from;
        base::file_descriptor const caller{
            ::accept4(door_.get(), reinterpret_cast<::sockaddr*>(&from), &size, SOCK_CLOEXEC)};
        if (!caller) {
            // No descriptor to be had, as a rule: who is not let in would knock for ever, and wait for an answer. The door stays,
            // shut, as long as the run does.
            bool const is_nobody_there = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
            if (!is_nobody_there) door_ = {};
            return;
        }
        auto const how = size > sizeof from.sun_family ? need::has_no_other : need::can_do_without;
        if (program_->file.empty() || !is_of_this_user(caller.get()) || !has_room(how)) continue;
        if (auto const pid = start_worker(*program_, caller.get(), worker_environment(environment)); pid > 0)
            alive_.push_back(pid);
    }
}

void run_workers::serve_until_end(int end, std::vector<std::string> const& environment) {
    while (end >= 0 && door_) {
        std::array<::pollfd, 2> either{{{end, POLLIN, 0}, {door_.get(), POLLIN, 0}}};
        if (::poll(either.data(), either.size(), -1) < 0 && errno != EINTR) break;
        if (either[0].revents != 0) break;
        if (either[1].revents != 0) answer_door(environment);
    }
    if (door_) take_door_away();
}

void run_workers::take_door_away() {
    door_ = {};
    if (std::exchange(is_there_, false)) ::unlink(address_.c_str());
}

}  // namespace kiln::cli
