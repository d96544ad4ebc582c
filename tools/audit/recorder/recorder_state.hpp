// SPDX-License-Identifier: Apache-2.0
// What the parts of the recorder share.
#pragma once

#include "activity.hpp"
#include "audit/call_class.hpp"
#include "call_sites.hpp"

#include <atomic>
#include <csignal>
#include <ctime>
#include <exception>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace kiln::recorder {

using audit::call_class;

inline constexpr unsigned launches_watched_at_first = 2000;
inline constexpr std::size_t most_calls = 2048;
inline constexpr std::size_t most_threads = 64;

inline std::uint64_t clock_ns(::clockid_t which) {
    ::timespec t{};
    ::clock_gettime(which, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}
inline std::uint64_t CUPTIAPI now_ns() { return clock_ns(CLOCK_MONOTONIC); }

// All of it lives as long as the process: nothing here is destroyed while other threads may still call.
struct recorder {
    cupti_calls cupti;
    recording_file file;
    site_ring ring;
    activity_counts counts;
    CUpti_SubscriberHandle subscriber = nullptr;
    std::array<std::array<call_class, most_calls>, 2> classes{};  // runtime, driver
    std::array<std::array<bool, most_calls>, 2> is_async{};
    std::array<std::array<bool, most_calls>, 2> comes_with_launches{};
    std::vector<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>> launch_calls;  // those
    std::atomic<unsigned> launches{0};
    std::array<std::atomic<std::uint32_t>, most_threads> threads{};
    std::uint64_t dropped = 0;
    std::uint64_t key = 0;
    unsigned level = 1;
    ::pid_t owner = 0;
    std::vector<::pid_t> helpers;  // threads that CUPTI began together with us
};
extern std::atomic<bool> on;
extern recorder* self;

// The recording ends here, and says that it is not whole.
void give_up() noexcept;

// What others call goes through this: what finds no memory ends the recording, not the program.
template <class Body>
void or_give_up(Body const& body) {
    if (this_thread() == nullptr) return give_up();
    try {
        body();
    } catch (std::exception const&) {  // a thread that is cancelled goes on to its end
        give_up();
    }
}

}  // namespace kiln::recorder
