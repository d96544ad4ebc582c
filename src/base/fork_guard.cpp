// SPDX-License-Identifier: Apache-2.0
#include "base/fork_guard.hpp"

#include <array>
#include <atomic>
#include <pthread.h>
#include <unistd.h>

namespace kiln::base {

// fork() copies memory and nothing else: not the threads that hold locks. The handlers below run in the forking
// thread. They use ::close and not base::sys(): only async-signal-safe calls are allowed in the child.
struct fork_registry {
    std::mutex list_mutex;
    forkable_mutex* first = nullptr;
    std::atomic<std::uint64_t> generation{0};
    std::array<std::atomic<int>, 256> descriptors;

    fork_registry() {
        for (auto& slot : descriptors) slot.store(-1);
        ::pthread_atfork([] { get().before(); }, [] { get().after(); }, [] { get().in_child(); });
    }
    // Never destroyed: fork() may be called after the last static destructor.
    static fork_registry& get() noexcept {
        static auto* const registry = new fork_registry;
        return *registry;
    }

    void before() noexcept {
        list_mutex.lock();
        for (auto* m = first; m != nullptr; m = m->next_) m->mutex_.lock();
    }
    void after() noexcept {
        for (auto* m = first; m != nullptr; m = m->next_) m->mutex_.unlock();
        list_mutex.unlock();
    }
    void in_child() noexcept {
        generation.fetch_add(1);
        for (auto& slot : descriptors) {
            if (int const fd = slot.exchange(-1); fd >= 0) ::close(fd);
        }
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

forkable_mutex::forkable_mutex() { fork_registry::get().add(*this); }
forkable_mutex::~forkable_mutex() { fork_registry::get().remove(*this); }

std::uint64_t fork_generation() noexcept { return fork_registry::get().generation.load(); }

bool close_in_child(int fd) noexcept {
    for (auto& slot : fork_registry::get().descriptors) {
        int none = -1;
        if (slot.compare_exchange_strong(none, fd)) return true;
    }
    return false;
}

void forget_in_child(int fd) noexcept {
    for (auto& slot : fork_registry::get().descriptors) {
        int same = fd;
        if (slot.compare_exchange_strong(same, -1)) return;
    }
}

}  // namespace kiln::base
