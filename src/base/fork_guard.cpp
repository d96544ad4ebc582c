// SPDX-License-Identifier: Apache-2.0
#include "base/fork_guard.hpp"

#include "base/clock.hpp"
#include "base/exit_gate.hpp"

#include <array>
#include <atomic>
#include <cassert>
#include <pthread.h>
#include <thread>
#include <type_traits>
#include <unistd.h>

namespace kiln::base {

// fork() copies memory and nothing else: not the threads that hold locks. The handlers below run in the forking
// thread. They use ::close and not base::sys(): only async-signal-safe calls are allowed in the child.
namespace {
constinit thread_local bool holds_gate = false;
constinit thread_local int held = 0;  // forkable mutexes, by this thread
}  // namespace

// Kept by any number of threads, who do not wait for one another: the loader may call a library that is just being loaded, whose thread has the
// loader's lock, while another thread keeps this and waits for that lock.
class fork_gate {
public:
    void keep() noexcept {
        for (auto now = state_.load();;) {
            if (now == forking) {
                state_.wait(now);
                now = state_.load();
            } else if (state_.compare_exchange_weak(now, now + 1)) return;
        }
    }
    void let_go() noexcept { state_.fetch_sub(1); }

    // By the thread that forks, which may keep it itself (1) or not (0): as soon as no other does. A thread that loads a library may wait for one
    // whose library forks while it is loaded: nobody waits for ever.
    [[nodiscard]] bool close(int mine) noexcept {
        auto const end = clock::now() + std::chrono::seconds{2};
        for (int now = mine; !state_.compare_exchange_strong(now, forking); now = mine) {
            if (clock::now() >= end) return false;
            std::this_thread::sleep_for(std::chrono::microseconds{100});
        }
        return true;
    }
    // In a child nobody else keeps it.
    void open(int mine) noexcept {
        state_.store(mine);
        state_.notify_all();
    }

private:
    static constexpr int forking = -1;
    std::atomic<int> state_{0};  // how many keep it
};

struct fork_registry {
    fork_gate gate;
    std::mutex list_mutex;
    forkable_mutex* first = nullptr;
    std::atomic<std::uint64_t> generation{0};
    std::array<std::atomic<int>, 256> descriptors{};  // one more than each; 0: a free slot

    // There from the beginning and never destroyed: a child must not wait for a thread that was just making it, and fork() may be called after
    // the last static destructor.
    static fork_registry& get() noexcept { return all; }
    static fork_registry all;

    bool is_gate_closed = false;  // by the thread that forks

    void before() noexcept {
        // First: they may ask for our locks where they are.
        wait_for_library_users();
        bool const closed = gate.close(holds_gate ? 1 : 0);
        list_mutex.lock();
        is_gate_closed = closed;
        for (auto* m = first; m != nullptr; m = m->next_) m->mutex_.lock();
    }
    void after() noexcept {
        for (auto* m = first; m != nullptr; m = m->next_) m->mutex_.unlock();
        bool const closed = is_gate_closed;
        list_mutex.unlock();
        if (closed) gate.open(holds_gate ? 1 : 0);
        let_library_users_go_on();
    }
    void in_child() noexcept {
        generation.fetch_add(1);
        forget_library_users_of_parent();
        for (auto& slot : descriptors) {
            if (int const kept = slot.exchange(0); kept > 0) ::close(kept - 1);
        }
        is_gate_closed = true;  // whoever kept it open is not here
        after();
    }

    void add(forkable_mutex& m) noexcept {
        std::lock_guard const lock{list_mutex};
        m.next_ = first;
        if (first != nullptr) first->previous_ = &m;
        first = &m;
    }
    void remove(forkable_mutex& m) noexcept {
        std::lock_guard const lock{list_mutex};
        if (m.previous_ != nullptr) m.previous_->next_ = m.next_;
        else first = m.next_;
        if (m.next_ != nullptr) m.next_->previous_ = m.previous_;
    }
};

constinit fork_registry fork_registry::all;
static_assert(std::is_trivially_destructible_v<fork_registry>);

namespace {

// As the library is loaded: no call of ours comes before it.
[[maybe_unused]] int const registered =
    ::pthread_atfork([] { fork_registry::get().before(); }, [] { fork_registry::get().after(); },
                     [] { fork_registry::get().in_child(); });

}  // namespace

forkable_mutex::forkable_mutex() {
    assert(held == 0 || holds_gate);
    fork_registry::get().add(*this);
}
forkable_mutex::~forkable_mutex() {
    assert(held == 0 || holds_gate);
    fork_registry::get().remove(*this);
}

void forkable_mutex::lock() {
    assert(held == 0 || holds_gate);
    mutex_.lock();
    ++held;
}
void forkable_mutex::unlock() {
    --held;
    mutex_.unlock();
}
bool forkable_mutex::try_lock() {
    assert(held == 0 || holds_gate);
    bool const taken = mutex_.try_lock();
    if (taken) ++held;
    return taken;
}

no_fork_meanwhile::no_fork_meanwhile() noexcept : is_first_{!holds_gate} {
    if (!is_first_) return;
    assert(held == 0);
    fork_registry::get().gate.keep();
    holds_gate = true;
}
no_fork_meanwhile::~no_fork_meanwhile() {
    if (!is_first_) return;
    holds_gate = false;
    fork_registry::get().gate.let_go();
}

bool keeps_fork_away() noexcept { return holds_gate || held > 0; }

std::uint64_t fork_generation() noexcept { return fork_registry::get().generation.load(); }

bool close_in_child(int fd) noexcept {
    for (auto& slot : fork_registry::get().descriptors) {
        int none = 0;
        if (slot.compare_exchange_strong(none, fd + 1)) return true;
    }
    return false;
}

void forget_in_child(int fd) noexcept {
    for (auto& slot : fork_registry::get().descriptors) {
        int same = fd + 1;
        if (slot.compare_exchange_strong(same, 0)) return;
    }
}

}  // namespace kiln::base
