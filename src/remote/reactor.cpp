// SPDX-License-Identifier: Apache-2.0
#include "remote/reactor.hpp"

#include "base/process_stat.hpp"
#include "base/quiet_thread.hpp"
#include "base/standard_streams.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <fmt/format.h>
#include <string_view>
#include <sys/eventfd.h>
#include <unistd.h>

namespace kiln::remote {

namespace {

// On a busy machine a thread that nothing holds up may have no processor for seconds.
bool can_run(::pid_t thread) noexcept {
    std::array<char, 40> name{};
    fmt::format_to_n(name.data(), name.size() - 1, "/proc/self/task/{}/stat", thread);
    base::file_descriptor const file{::open(name.data(), O_RDONLY | O_CLOEXEC)};
    std::array<char, 128> text;
    auto const size = file ? ::read(file.get(), text.data(), text.size()) : 0;
    std::string_view const told{text.data(), static_cast<std::size_t>(std::max<::ssize_t>(size, 0))};
    return base::state_and_more(told).starts_with('R');
}

}  // namespace

bool reactor::start() {
    if (thread_.joinable()) return true;
    wake_ =
        base::file_descriptor{base::above_standard_streams([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); })};
    if (!wake_) return false;
    auto made = base::start_quiet_thread([this] { run(); });
    if (!made) return false;
    thread_ = *std::move(made);
    return true;
}

bool reactor::post(task what) {
    std::lock_guard const lock{mutex_};
    if (stopping_ || !start()) return false;
    bool const was_empty = posted_.empty();
    posted_.push_back(std::move(what));
    std::uint64_t const one = 1;
    if (was_empty) (void)!::write(wake_.get(), &one, sizeof one);
    return true;
}

bool reactor::stop(task last, std::optional<base::time_point> deadline) noexcept {
    std::thread ending;
    bool ends = true;
    {
        std::unique_lock lock{mutex_};
        if (!stopping_) last_ = std::move(last);
        stopping_ = true;
        std::uint64_t const one = 1;
        if (wake_) (void)!::write(wake_.get(), &one, sizeof one);
        ending = std::move(thread_);
        if (deadline && ending.joinable()) ends = ended_.wait_until(lock, *deadline, [&] { return has_ended_; });
    }
    if (!ends) ending.detach();
    else if (ending.joinable()) ending.join();
    return ends;
}

void reactor::end_after_this() noexcept {
    std::lock_guard const lock{mutex_};
    stopping_ = true;
    if (thread_.joinable()) thread_.detach();
}

bool reactor::runs_here() noexcept {
    std::lock_guard const lock{mutex_};
    return thread_.get_id() == std::this_thread::get_id();
}

base::clock::duration reactor::held_up_for() const noexcept {
    constexpr std::chrono::milliseconds not_worth_a_look{100};
    constexpr std::chrono::seconds more_than_a_busy_machine{10};
    auto const since = busy_since_.load(std::memory_order_relaxed);
    if (since == 0) return {};
    auto const out = base::clock::now().time_since_epoch() - base::clock::duration{since};
    if (out < not_worth_a_look || out > more_than_a_busy_machine) return out;
    return can_run(thread_id_.load(std::memory_order_relaxed)) ? base::clock::duration{} : out;
}

void reactor::is_busy() noexcept {
    busy_since_.store(base::clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

reactor::timer reactor::at(base::time_point when, task what) {
    auto const id = ++count_;
    timers_.emplace(std::pair{when, id}, std::move(what));
    rings_at_.emplace(id, when);
    return id;
}

void reactor::cancel(timer& which) noexcept {
    auto const at = rings_at_.find(std::exchange(which, 0));
    if (at == rings_at_.end()) return;
    timers_.erase({at->second, at->first});
    rings_at_.erase(at);
}

void reactor::watch(int fd, short events, std::function<void(short)> what) {
    watched_[fd] = {events, std::move(what), ++count_};
}

void reactor::unwatch(int fd) noexcept { watched_.erase(fd); }

void reactor::wait_by(waiter how, task after) {
    wait_ = std::move(how);
    after_ = std::move(after);
}

void reactor::guarded(task const& what) noexcept {
    try {
        what();
    } catch (std::exception const&) {  // shortage of memory: whoever waited for this has a deadline
    }
}

int reactor::pause_ms() const {
    if (timers_.empty()) return -1;
    auto const left = timers_.begin()->first.first - base::clock::now();
    if (left.count() <= 0) return 0;
    auto const ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    return static_cast<int>(std::min<std::int64_t>(ms, 60'000));
}

void reactor::run_due() {
    auto const now = base::clock::now();
    while (!timers_.empty() && timers_.begin()->first.first <= now) {
        auto const next = timers_.extract(timers_.begin());
        rings_at_.erase(next.key().second);
        guarded(next.mapped());
    }
}

void reactor::report(std::vector<::pollfd> const& ready) {
    // A descriptor that was closed by one of these, and perhaps given out again, is not told what its forerunner had to say.
    auto const before = count_;
    for (auto const& p : ready) {
        if (p.revents == 0) continue;
        auto const found = watched_.find(p.fd);
        if (found == watched_.end() || found->second.since > before) continue;
        auto const what = found->second.what;
        guarded([&] { what(p.revents); });
    }
}

void reactor::turn() {
    std::vector<::pollfd> all{{wake_.get(), POLLIN, 0}};
    for (auto const& [fd, w] : watched_) all.push_back({fd, w.events, 0});
    auto const pause = pause_ms();
    // Copied: either may be replaced by what it calls.
    auto const wait = wait_;
    auto const after = after_;
    busy_since_.store(0, std::memory_order_relaxed);
    if (wait) (void)wait(all, pause);
    else (void)::poll(all.data(), all.size(), pause);
    is_busy();
    std::uint64_t ignored = 0;
    if (all.front().revents != 0) (void)!::read(wake_.get(), &ignored, sizeof ignored);
    all.erase(all.begin());
    report(all);
    if (after) guarded(after);
    run_due();
}

void reactor::run() noexcept {
    thread_id_.store(::gettid(), std::memory_order_relaxed);
    is_busy();
    for (;;) {
        std::deque<task> some;
        task last;
        bool ends = false;
        {
            std::lock_guard const lock{mutex_};
            some.swap(posted_);
            ends = stopping_;
            if (ends) last = std::move(last_);
        }
        if (ends) {
            if (last) guarded(last);
            timers_.clear();
            rings_at_.clear();
            watched_.clear();
            std::lock_guard const lock{mutex_};
            wake_.reset();  // whoever made this may have left it to the thread, for ever
            has_ended_ = true;
            ended_.notify_all();
            return;
        }
        for (auto const& t : some) guarded(t);
        guarded([this] { turn(); });
    }
}

}  // namespace kiln::remote
