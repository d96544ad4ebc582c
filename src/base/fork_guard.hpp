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
#include <functional>
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
// Not while waiting for anybody else, and before any forkable_mutex. Any number of threads may have one: they do not wait for each other.
class no_fork_meanwhile {
public:
    no_fork_meanwhile() noexcept;
    ~no_fork_meanwhile();
    no_fork_meanwhile(no_fork_meanwhile const&) = delete;
    no_fork_meanwhile& operator=(no_fork_meanwhile const&) = delete;

private:
    bool is_first_;  // of this thread
};

// This thread holds something that fork() in others waits for.
[[nodiscard]] bool keeps_fork_away() noexcept;

// How many times this process is the child of a fork: 0 in the first.
[[nodiscard]] std::uint64_t fork_generation() noexcept;

// One T for each process: threads, the locks they share, and what they have in hand. A child of fork() makes one of its own at the first use
// and leaves its parent's alone for ever, not destroyed: the threads are not here, and the locks may be held by them.
template <class T>
class per_process {
public:
    explicit per_process(std::function<std::unique_ptr<T>()> make) : make_{std::move(make)} { (void)get(); }
    ~per_process() { std::unique_ptr<holder> const last{mine()}; }
    per_process(per_process const&) = delete;
    per_process& operator=(per_process const&) = delete;

    [[nodiscard]] T& get() {
        auto* seen = last_.load(std::memory_order_acquire);
        while (seen == nullptr || seen->generation != fork_generation()) {
            std::unique_ptr<holder> fresh{new holder{fork_generation(), make_(), seen}};
            if (last_.compare_exchange_strong(seen, fresh.get(), std::memory_order_acq_rel)) seen = fresh.release();
        }
        return *seen->what;
    }
    // Null in a child that has not used it.
    [[nodiscard]] T* peek() const noexcept {
        auto* const last = mine();
        return last == nullptr ? nullptr : last->what.get();
    }

private:
    struct holder {
        std::uint64_t generation;
        std::unique_ptr<T> what;
        holder* parents;
    };
    [[nodiscard]] holder* mine() const noexcept {
        auto* const last = last_.load(std::memory_order_acquire);
        return last != nullptr && last->generation == fork_generation() ? last : nullptr;
    }

    std::function<std::unique_ptr<T>()> make_;
    std::atomic<holder*> last_{nullptr};
};

// The child of a fork closes `fd` at once, so that a lock on it dies with the parent. False when the table is
// full: the lock is then shared with children until they close it.
bool close_in_child(int fd) noexcept;
void forget_in_child(int fd) noexcept;

}  // namespace kiln::base
