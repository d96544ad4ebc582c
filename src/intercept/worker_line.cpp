// SPDX-License-Identifier: Apache-2.0
#include "intercept/worker_line.hpp"

#include "base/clock.hpp"
#include "base/process_stat.hpp"
#include "base/standard_streams.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace kiln::intercept {

namespace {

using namespace std::chrono_literals;

// Whoever listens says hello at once, unless somebody stopped it.
constexpr std::chrono::seconds patience = 10s;
// How often a silent worker is looked at, and how often in vain before nobody waits for it any longer.
constexpr auto between_looks = 2s;
constexpr int most_looks = 5;

// False: nothing came until then. The program may have a timer, whose signals end every wait early, again and again.
bool is_readable(int fd, base::time_point end) {
    for (;;) {
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(end - base::clock::now());
        ::pollfd one{fd, POLLIN, 0};
        int const ready = ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
        if (ready > 0 || (ready < 0 && errno != EINTR)) return true;  // to be read, or to be told what is wrong
        if (ready == 0) return false;
    }
}

struct pulse {
    char state = '?';
    std::string_view times;  // on a CPU, as the kernel writes them
};

// nullopt: it cannot be seen from here, or is another process: the program may be in another container.
std::optional<pulse> pulse_in(std::string_view stat) {
    auto const told = base::state_and_more(stat);
    if (stat.find(" (kiln-") == stat.npos || told.empty()) return std::nullopt;
    pulse out{.state = told.front(), .times = told};
    constexpr int fields_before = 11;  // from the state on: see proc(5)
    for (int i = 0; i < fields_before; ++i)
        out.times.remove_prefix(std::min(out.times.size(), out.times.find(' ') + 1));
    auto const second = out.times.find(' ', out.times.find(' ') + 1);
    out.times = out.times.substr(0, second);
    return out;
}

// Whether a worker that says nothing is at work: on a CPU or waiting for one or for a disk, or further than at the last look.
class worker_watch {
public:
    explicit worker_watch(int pid) : file_{fmt::format("/proc/{}/stat", pid)} {}
    [[nodiscard]] bool is_given_up() {
        auto const data = base::read_file(file_);
        auto const now = data && *data ? pulse_in(base::as_text(**data)) : std::nullopt;
        if (!now) return false;
        bool const is_alive = now->state == 'R' || now->state == 'D' || now->times != times_;
        times_ = now->times;
        in_vain_ = is_alive ? 0 : in_vain_ + 1;
        return in_vain_ >= most_looks;
    }

private:
    std::string file_;
    std::string times_;
    int in_vain_ = 0;
};

}  // namespace

// A program may close descriptors it does not know and open files of its own in their places: what is not our socket any more is
// neither used nor closed. Nor is one that was inherited by fork(): both processes would talk to one worker.
struct worker_line::connection {
    int fd = -1;
    ::dev_t device = 0;
    ::ino_t inode = 0;
    ::pid_t owner = 0;
    int worker = 0;
    compile::frame_parser parser;

    connection() = default;
    connection(connection const&) = delete;
    connection& operator=(connection const&) = delete;
    ~connection() {
        if (is_there()) ::close(fd);
    }

    [[nodiscard]] bool is_there() const noexcept {
        struct ::stat about {};
        return fd >= 0 && ::fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode) && about.st_dev == device &&
               about.st_ino == inode;
    }

    // False: the worker was stopped, or hangs.
    [[nodiscard]] bool is_answered() const {
        worker_watch watch{worker};
        for (;;) {
            if (is_readable(fd, base::clock::now() + between_looks)) return true;
            if (watch.is_given_up()) return false;
        }
    }

    [[nodiscard]] std::optional<worker_answer> ask(base::byte_span job) {
        if (!compile::send_frame(fd, compile::frame_kind::request, job) || !is_answered()) return std::nullopt;
        auto const said = compile::receive_frame(fd, parser);
        if (!said || !*said || (*said)->kind != compile::frame_kind::reply) return std::nullopt;
        auto product = decode_foreign_product((*said)->body);
        if (!product) return std::nullopt;
        return worker_answer{*std::move(product), worker};
    }
};

std::shared_ptr<worker_line::connection> worker_line::take_idle() {
    std::lock_guard const lock{mutex_};
    auto const self = ::getpid();
    std::erase_if(idle_, [&](auto const& one) { return one->owner != self || !one->is_there(); });
    if (idle_.empty()) return nullptr;
    auto out = std::move(idle_.back());
    idle_.pop_back();
    return out;
}

worker_line::attempt worker_line::connect(busy what) {
    ::sockaddr_un to{};
    to.sun_family = AF_UNIX;
    if (address_.empty() || address_.size() >= sizeof to.sun_path) return {};
    std::memcpy(to.sun_path, address_.c_str(), address_.size() + 1);
    auto out = std::make_shared<connection>();
    out->fd = base::above_standard_streams([] { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); });
    struct ::stat about {};
    if (out->fd < 0 || ::fstat(out->fd, &about) != 0) return {};
    out->device = about.st_dev;
    out->inode = about.st_ino;
    out->owner = ::getpid();
    // Of one that was stopped in the middle of what it says, too.
    ::timeval const longest{patience.count(), 0};
    for (int const way : {SO_SNDTIMEO, SO_RCVTIMEO})
        (void)!::setsockopt(out->fd, SOL_SOCKET, way, &longest, sizeof longest);
    // A socket with a name, whichever, says that the caller has nothing else.
    ::sockaddr_un any{};
    any.sun_family = AF_UNIX;
    if (what == busy::wait) (void)!::bind(out->fd, reinterpret_cast<::sockaddr const*>(&any), sizeof any.sun_family);
    auto const end = base::clock::now() + patience;
    int connected = -1;
    do connected = ::connect(out->fd, reinterpret_cast<::sockaddr const*>(&to), sizeof to);
    while (connected != 0 && errno == EINTR && base::clock::now() < end);
    if (connected != 0) return {};
    if (!is_readable(out->fd, end)) {
        nobody_answers_.store(true);
        return {};
    }
    auto const said = compile::receive_frame(out->fd, out->parser);
    if (said && !*said) return {.line = nullptr, .is_busy = true};
    if (!said || (*said)->kind != compile::frame_kind::hello) return {};
    auto const hello = compile::decode_hello((*said)->body);
    if (!hello || !compile::check_protocol(*hello)) return {};
    out->worker = static_cast<int>(hello->pid);
    return {.line = std::move(out)};
}

// Whoever has all the workers does not tell when one is free: it is asked again and again.
std::shared_ptr<worker_line::connection> worker_line::connect_or_wait(busy what) {
    constexpr auto pause = 20ms;
    constexpr auto longest = 1min;
    auto const end = base::clock::now() + longest;
    for (;;) {
        auto [line, is_busy] = connect(what);
        if (line || !is_busy || what == busy::give_up || base::clock::now() > end) return line;
        std::this_thread::sleep_for(pause);
    }
}

void worker_line::give_back(std::shared_ptr<connection> one) {
    std::lock_guard const lock{mutex_};
    idle_.push_back(std::move(one));
}

std::optional<worker_answer> worker_line::compile(foreign_job const& work, busy what) {
    if (address_.empty() || nobody_answers_.load()) return std::nullopt;
    auto const job = encode(work);
    // A worker that was idle for long has left.
    for (auto line = take_idle(); line != nullptr; line = take_idle()) {
        if (auto out = line->ask(job)) {
            give_back(std::move(line));
            return out;
        }
    }
    auto line = connect_or_wait(what);
    if (line == nullptr) return std::nullopt;
    auto out = line->ask(job);
    if (out) give_back(std::move(line));
    return out;
}

}  // namespace kiln::intercept
