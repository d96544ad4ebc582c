// SPDX-License-Identifier: Apache-2.0
//
// What the stand-ins for NVRTC and nvJitLink share: the real library each stands for, found by its own link map and opened only
// when there is no way around it, and the settings and store of `kiln run`. One instance in each stand-in, never destroyed.
// Nothing here throws into the program: see guarded().
#pragma once

#include "base/config.hpp"
#include "base/fork_guard.hpp"
#include "intercept/compiler_library.hpp"
#include "intercept/foreign_store.hpp"
#include "intercept/run_log.hpp"
#include "intercept/worker_line.hpp"

#include <kiln/event.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <pthread.h>
#include <set>

namespace kiln::intercept {

class real_library final : public compiler_library {
public:
    // `own` is any symbol of the stand-in.
    explicit real_library(void const* own);

    [[nodiscard]] std::string path();
    // Empty when it cannot be known, and then nothing is served; asked again, it may be: descriptors run out and are closed.
    [[nodiscard]] std::string toolchain();
    [[nodiscard]] std::string why_unknown();
    [[nodiscard]] bool is_open() const noexcept { return handle_.load() != nullptr; }
    // Whether handles that are not ours can be its own: those of private functions, or what the program kept when it had it without us.
    [[nodiscard]] bool may_have_made_some() const noexcept;
    // Opens it.
    [[nodiscard]] void* symbol(char const* name) override;
    // Whether every file it opens is seen while a capture lives, and it is still the library the keys speak of.
    [[nodiscard]] bool can_be_watched();
    // By the program, anew, perhaps by another name: beside that there may be other parts of it, and so there may by now beside the old one.
    void begin_anew(std::string path);
    // As the program did. What it still has of it is then as good as without us.
    void close();
    // At once, for who may not be able to later.
    void open_now() { (void)toolchain(), (void)open(); }

private:
    void* open();
    std::optional<void*> known_symbol(char const* name);
    std::string path_;
    base::forkable_mutex mutex_;
    std::atomic<void*> handle_{nullptr};
    std::optional<std::string> toolchain_;
    bool is_replaced_ = false;
    opened_compiler opened_;
    // Each is looked for once: the loader's lock may be another thread's, whose library compiles as it is loaded and waits for this one.
    std::map<std::string, void*, std::less<>> symbols_;
};

enum class jit_policy { allow, warn, forbid };

class standin;
// The one of this library; each defines it.
[[nodiscard]] standin& self();

class standin {
public:
    // The one of this library. Its counters are added when the process ends by itself; one that is killed loses them.
    [[nodiscard]] static standin& the_only(std::string_view library, void const* own);

    real_library real;
    foreign_store store;
    worker_line workers;

    [[nodiscard]] jit_policy jit() const noexcept { return jit_; }
    [[nodiscard]] bool verifies() const noexcept { return verifies_; }
    // Why nothing is served in this process at this moment; empty when it is.
    [[nodiscard]] std::string not_serving();
    // The same, where it was just asked whether the program has shut itself in.
    [[nodiscard]] std::string not_serving_otherwise();
    // Which headers this process had to read, for the next run to have them read ahead.
    void tell_headers();
    // Headers that the compiler read just now: for this process, and for others that waited for what was made.
    void share_headers(std::vector<known_file> files);
    void take_shared_headers();
    // A request in the program's own words, for `kiln replay`.
    [[nodiscard]] bool records_requests() const noexcept { return !requests_.empty(); }
    void record(base::digest const& request, foreign_job const& what) const;
    // What the program is called.
    [[nodiscard]] std::string const& program() const noexcept { return program_; }
    // What is not what the compiler says goes. In words: what became of it.
    [[nodiscard]] std::string remove(store::address const& at);
    // To the run's log and, where the user wants events, among them.
    void tell(happening h) noexcept;

private:
    standin(std::string_view library, void const* own, base::config const& settings);
    void tell_rejection(store::address const& at, store::miss why) noexcept;
    [[nodiscard]] event_log& events();
    std::string library_;
    std::string program_;
    std::string log_;
    std::string requests_;
    std::string recent_;  // a list of headers
    bool has_events_ = false;
    std::atomic<int> introduced_{0};  // the process whose name is among the events
    jit_policy jit_ = jit_policy::allow;
    bool verifies_ = false;
};

// The handles a stand-in gave out. All others are the real library's: private functions of it make some, too.
template <class Record>
class live_handles {
public:
    void* add(Record* record) {
        std::lock_guard const lock{mutex_};
        all_.insert(record);
        return record;
    }
    [[nodiscard]] Record* find(void* handle) {
        std::lock_guard const lock{mutex_};
        return all_.contains(handle) ? static_cast<Record*>(handle) : nullptr;
    }
    [[nodiscard]] Record* take(void* handle) {
        std::lock_guard const lock{mutex_};
        return all_.erase(handle) == 1 ? static_cast<Record*>(handle) : nullptr;
    }

private:
    base::forkable_mutex mutex_;
    std::set<void*> all_;
};

// While one lives, nobody cancels this thread: the real libraries have no points where that happens, and what we open, write and wait for
// would be some.
class not_cancelled {
public:
    not_cancelled() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~not_cancelled() { ::pthread_setcancelstate(before_, nullptr); }
    not_cancelled(not_cancelled const&) = delete;
    not_cancelled& operator=(not_cancelled const&) = delete;

private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

// What is exported runs in here. `out_of_memory` is the API's word for it.
template <class Body>
int guarded(int out_of_memory, int broken, Body body) noexcept {
    not_cancelled const whole;
    try {
        return body();
    } catch (std::bad_alloc const&) {
        return out_of_memory;
    } catch (...) {
        return broken;
    }
}

// Of the time that asking to lead took: what was spent waiting for another. One who has let go between two looks at him has left no sign.
[[nodiscard]] inline std::chrono::microseconds waited_for_another(store::flight const& asked,
                                                                  std::chrono::microseconds took) {
    constexpr std::chrono::seconds no_free_lock_takes_so_long{1};
    bool const was_another = asked.outcome() == store::flight_outcome::finished || took > no_free_lock_takes_so_long;
    return was_another ? took : std::chrono::microseconds{};
}

class stopwatch {
public:
    [[nodiscard]] std::chrono::microseconds so_far() const {
        return std::chrono::duration_cast<std::chrono::microseconds>(base::clock::now() - start_);
    }
    [[nodiscard]] std::chrono::milliseconds ms() const {
        return std::chrono::duration_cast<std::chrono::milliseconds>(base::clock::now() - start_);
    }

private:
    base::time_point start_ = base::clock::now();
};

}  // namespace kiln::intercept
