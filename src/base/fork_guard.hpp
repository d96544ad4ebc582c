// SPDX-License-Identifier: Apache-2.0
//
// What fork() does to us. A forkable_mutex is one that fork() waits for until it is not held,
// so the child finds it free and what it protects whole; every mutex of the store is one. They are leaf locks: no thread takes, makes or
// destroys a second one while it holds one, because fork() takes them all, one after the other, unless no_fork_meanwhile keeps fork() away
// (asserted). A generation number tells a child that threads and locks of its parent are not its own,
// and descriptors of lock files registered here are closed in the child at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace kiln::base {

class forkable_mutex {
public:
    forkable_mutex();
    ~forkable_mutex();
    forkable_mutex(forkable_mutex const&) = delete;
    forkable_mutex& operator=(forkable_mutex const&) = delete;

    void lock();
    void unlock();
    bool try_lock();

private:
    friend struct fork_registry;
    std::mutex mutex_;
    forkable_mutex* next_ = nullptr;
    forkable_mutex* previous_ = nullptr;
};

// Made at the first use and never destroyed. Two threads may make it at the same time: the first one's is kept. A static of a function
// would be one that a child of fork() waits for, for ever, if a thread that it does not have was just making it.
template <class T>
class made_once {
public:
    constexpr made_once() noexcept = default;
    made_once(made_once const&) = delete;
    made_once& operator=(made_once const&) = delete;

    template <class Make>  // -> std::unique_ptr<T>
    [[nodiscard]] T& get(Make make) {
        if (auto* const there = kept_.load(std::memory_order_acquire)) return *there;
        std::unique_ptr<T> fresh = make();
        T* other = nullptr;
        if (!kept_.compare_exchange_strong(other, fresh.get(), std::memory_order_acq_rel)) return *other;
        return *fresh.release();
    }
    // Null where nobody has used it.
    [[nodiscard]] T* peek() const noexcept { return kept_.load(std::memory_order_acquire); }

private:
    std::atomic<T*> kept_{nullptr};
};

// While there is one, fork() in other threads waits: for the making of what a child would find half made, statics of functions above all.
// Not while waiting for anybody else, and before any forkable_mutex.
class no_fork_meanwhile {
public:
    no_fork_meanwhile() noexcept;
    ~no_fork_meanwhile();
    no_fork_meanwhile(no_fork_meanwhile const&) = delete;
    no_fork_meanwhile& operator=(no_fork_meanwhile const&) = delete;

private:
    bool is_first_;  // of this thread
};

// How many times this process is the child of a fork: 0 in the first.
[[nodiscard]] std::uint64_t fork_generation() noexcept;

// The child of a fork closes `fd` at once, so that a lock on it dies with the parent. False when the table is
// full: the lock is then shared with children until they close it.
bool close_in_child(int fd) noexcept;
void forget_in_child(int fd) noexcept;

}  // namespace kiln::base
