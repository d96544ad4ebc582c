// SPDX-License-Identifier: Apache-2.0
#include "compile/worker_process.hpp"

#include "base/clock.hpp"
#include "base/directory.hpp"
#include "base/process_stat.hpp"
#include "base/quiet_writes.hpp"
#include "base/standard_streams.hpp"
#include "compile/environment.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::compile {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t last_words_bytes = 4096;
constexpr ::off_t most_words_bytes = ::off_t{1} << 20;
constexpr int most_reads = 64;  // of 64 KiB in one receive()

// Whether a thread of a process is on a CPU or waits for one.
bool is_ready(::pid_t pid) {
    fs::path const tasks = fmt::format("/proc/{}/task", pid);
    bool out = false;
    (void)base::for_each_name(tasks, [&](std::string_view task) {
        auto const read =
            out ? result<std::optional<base::bytes>>{std::nullopt} : base::read_file(tasks / task / "stat");
        if (!read || !*read) return;
        out = base::state_and_more(base::as_text(**read)).starts_with('R');
    });
    return out;
}

class file_actions {
public:
    file_actions() { ::posix_spawn_file_actions_init(&actions_); }
    ~file_actions() { ::posix_spawn_file_actions_destroy(&actions_); }
    file_actions(file_actions const&) = delete;
    file_actions& operator=(file_actions const&) = delete;

    void open(int fd, char const* path, int flags) {
        keep(::posix_spawn_file_actions_addopen(&actions_, fd, path, flags, 0));
    }
    void duplicate(int from, int to) { keep(::posix_spawn_file_actions_adddup2(&actions_, from, to)); }
    void close_from(int first) {
#if __GLIBC_PREREQ(2, 34)
        keep(::posix_spawn_file_actions_addclosefrom_np(&actions_, first));
#else
        static_cast<void>(first);  // descriptors the host left open across exec are then open in the worker
#endif
    }
    [[nodiscard]] int status() const noexcept { return status_; }
    [[nodiscard]] posix_spawn_file_actions_t const* get() const noexcept { return &actions_; }

private:
    void keep(int status) noexcept {
        if (status_ == 0) status_ = status;
    }
    posix_spawn_file_actions_t actions_;
    int status_ = 0;
};

class spawn_attributes {
public:
    // No signal blocked or ignored, whatever the host does: what it ignores a compiler may need.
    spawn_attributes() {
        ::posix_spawnattr_init(&attributes_);
        sigset_t none, all;
        ::sigemptyset(&none);
        ::sigfillset(&all);
        ::posix_spawnattr_setsigmask(&attributes_, &none);
        ::posix_spawnattr_setsigdefault(&attributes_, &all);
        ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    ~spawn_attributes() { ::posix_spawnattr_destroy(&attributes_); }
    spawn_attributes(spawn_attributes const&) = delete;
    spawn_attributes& operator=(spawn_attributes const&) = delete;
    [[nodiscard]] posix_spawnattr_t const* get() const noexcept { return &attributes_; }

private:
    posix_spawnattr_t attributes_;
};

struct socket_ends {
    base::file_descriptor ours, theirs;
};

result<socket_ends> make_sockets() {
    int ends[2];
    base::occupy_standard_streams();
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return io_error("socketpair", errno);
    socket_ends out{base::file_descriptor{base::clear_of_standard_streams(ends[0])}, base::file_descriptor{ends[1]}};
    if (!out.ours || ::fcntl(out.ours.get(), F_SETFL, O_NONBLOCK) != 0) return io_error("worker socket", errno);
    // Descriptors 0 to 2 are replaced in the child before the socket is put in place: keep clear of them.
    if (out.theirs.get() < worker_socket) {
        int const higher = ::fcntl(out.theirs.get(), F_DUPFD_CLOEXEC, worker_socket);
        if (higher < 0) return io_error("worker socket", errno);
        out.theirs = base::file_descriptor{higher};
    }
    return out;
}

// Where the child's output goes: memory of a fixed size, taken as it is written; what does not fit is refused to the child.
// Parent and child share the position, which says how much was written. Without it the child's words are lost, nothing else.
base::file_descriptor make_words() noexcept {
    base::quiet_writes const quiet;
    base::file_descriptor words{base::memory_file("kiln-worker-output", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (!words || ::ftruncate(words.get(), most_words_bytes) != 0) return {};
    if (::fcntl(words.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0) return {};
    if (words.get() <= worker_socket)
        words = base::file_descriptor{::fcntl(words.get(), F_DUPFD_CLOEXEC, worker_socket + 1)};
    return words;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (auto& text : texts) out.push_back(text.data());
    out.push_back(nullptr);
    return out;
}

}  // namespace

bool child_end::from_outside() const noexcept {
    if (how == kind::unknown) return true;
    if (how == kind::exited) return false;
    return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

std::string child_end::describe() const {
    switch (how) {
        case kind::exited: return fmt::format("exited with status {}", number);
        case kind::signalled: {
            auto const* name = ::strsignal(number);
            return fmt::format("killed by signal {} ({})", number, name != nullptr ? name : "unknown");
        }
        case kind::unknown: break;
    }
    return "ended (how is not known: the host program took its exit status, or it took too long to die)";
}

result<worker_process> worker_process::start(std::filesystem::path const& program, worker_limits const& limits) {
    worker_process out;
    KILN_TRY(auto sockets, make_sockets());
    out.words_ = make_words();

    file_actions files;
    files.open(STDIN_FILENO, "/dev/null", O_RDONLY);
    for (int const fd : {STDOUT_FILENO, STDERR_FILENO}) {
        if (out.words_) files.duplicate(out.words_.get(), fd);
        else files.open(fd, "/dev/null", O_WRONLY);
    }
    files.duplicate(sockets.theirs.get(), worker_socket);
    files.close_from(worker_socket + 1);
    if (files.status() != 0) return io_error("posix_spawn", files.status());

    spawn_attributes const attributes;
    auto name = program.native();
    char* const arguments[] = {name.data(), nullptr};
    auto variables = environment_for_workers(environ, trust_of_process());
    auto const environment = pointers_to(variables);
    if (int const why =
            ::posix_spawn(&out.pid_, program.c_str(), files.get(), attributes.get(), arguments, environment.data());
        why != 0) {
        return io_error(program.native(), why);
    }
    out.socket_ = std::move(sockets.ours);
#ifdef SYS_pidfd_open
    out.pidfd_ = base::file_descriptor{
        base::above_standard_streams([&] { return static_cast<int>(::syscall(SYS_pidfd_open, out.pid_, 0)); })};
#endif
    // Cannot fail: the frame is small and the socket is empty. A child that is gone already is noticed by its end.
    static_cast<void>(out.send(frame_kind::configure, encode(limits)));
    return out;
}

result<void> worker_process::send(frame_kind kind, base::byte_span body) {
    KILN_TRY(auto whole, make_frame(kind, body));
    if (!has_unsent()) {
        outbox_ = std::move(whole);
        sent_ = 0;
    } else {
        outbox_.insert(outbox_.end(), whole.begin(), whole.end());
    }
    return flush();
}

result<void> worker_process::flush() {
    while (has_unsent()) {
        auto const count = ::send(socket_.get(), outbox_.data() + sent_, outbox_.size() - sent_, MSG_NOSIGNAL);
        if (count >= 0) sent_ += static_cast<std::size_t>(count);
        else if (errno == EAGAIN) return {};
        else if (errno != EINTR) return io_error("worker socket", errno);
    }
    outbox_ = {};
    sent_ = 0;
    return {};
}

result<worker_process::stream> worker_process::receive() {
    std::array<std::byte, 65536> buffer;
    for (int reads = 0; reads < most_reads;) {
        auto const count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
        if (count > 0) {
            parser_.feed({buffer.data(), static_cast<std::size_t>(count)});
            ++reads;
        } else if (count == 0 || errno == ECONNRESET) {
            return stream::ended;
        } else if (errno == EAGAIN) {
            return stream::open;
        } else if (errno != EINTR) {
            return io_error("worker socket", errno);
        }
    }
    return stream::more;
}

std::optional<worker_time> worker_process::time_had() const {
    ::clockid_t clock{};
    ::timespec used{};
    if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return std::nullopt;
    return worker_time{std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec}, is_ready(pid_)};
}

void worker_process::kill() noexcept {
#ifdef SYS_pidfd_send_signal
    if (pidfd_ && ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0) == 0) return;
#endif
    if (!pidfd_) ::kill(pid_, SIGKILL);
}

std::optional<child_end> worker_process::reap() noexcept {
    int status = 0;
    auto const got = ::waitpid(pid_, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) return std::nullopt;
    if (got < 0) return child_end{};
    if (WIFSIGNALED(status)) return child_end{child_end::kind::signalled, WTERMSIG(status)};
    return child_end{child_end::kind::exited, WEXITSTATUS(status)};
}

std::string worker_process::last_words() const {
    auto const written = words_ ? ::lseek(words_.get(), 0, SEEK_CUR) : 0;
    if (written <= 0) return {};
    std::string out(std::min<std::size_t>(last_words_bytes, static_cast<std::size_t>(written)), '\0');
    auto const count = ::pread(words_.get(), out.data(), out.size(), written - static_cast<off_t>(out.size()));
    out.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return out;
}

void worker_process::forget_words() noexcept {
    if (words_ && ::lseek(words_.get(), 0, SEEK_CUR) > 65536) ::lseek(words_.get(), 0, SEEK_SET);
}

namespace {

result<void> hear_hello(worker_process& from, std::filesystem::path const& program, base::time_point until) {
    for (;;) {
        auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(until - base::clock::now());
        if (left.count() <= 0) return fail(errc::timeout, "{} runs and says nothing", program.native());
        ::pollfd wait{from.socket(), POLLIN, 0};
        ::poll(&wait, 1, static_cast<int>(left.count()));
        KILN_TRY(auto const state, from.receive());
        KILN_TRY(auto const said, from.next_frame());
        if (said && said->kind != frame_kind::hello)
            return fail(errc::corrupt, "{} does not begin as a worker does", program.native());
        if (said) {
            KILN_TRY(auto const hello, decode_hello(said->body));
            return check_protocol(hello);
        }
        if (state == worker_process::stream::ended)
            return fail(errc::corrupt, "{} ended before it said a word", program.native());
    }
}

}  // namespace

result<void> try_worker(std::filesystem::path const& program, std::chrono::milliseconds patience) {
    worker_limits limits;
    limits.parent = static_cast<std::uint32_t>(::getpid());
    KILN_TRY(auto child, worker_process::start(program, limits));
    auto heard = hear_hello(child, program, base::clock::now() + patience);
    child.kill();
    while (!child.reap()) ::poll(nullptr, 0, 1);
    return heard;
}

}  // namespace kiln::compile
