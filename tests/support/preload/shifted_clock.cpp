// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, puts its wall clock off by KILN_TEST_CLOCK_SHIFT seconds. The steady clock is left alone.
#include <cstdlib>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {

long shift() {
    static long const seconds = [] {
        auto const* const text = ::getenv("KILN_TEST_CLOCK_SHIFT");
        return text == nullptr ? 0L : std::strtol(text, nullptr, 10);
    }();
    return seconds;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t which, timespec* out) noexcept {
    auto const status = ::syscall(SYS_clock_gettime, which, out);
    if (status == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) out->tv_sec += shift();
    return static_cast<int>(status);
}

int gettimeofday(timeval* out, void*) noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t* out) noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    if (out != nullptr) *out = now.tv_sec;
    return now.tv_sec;
}
}
