// SPDX-License-Identifier: Apache-2.0
//
// Standing in for what collects a child.
#include "waits.hpp"

#include "events.hpp"
#include "lock.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::companion {

namespace {

// The status is written by who collects a child, and by nobody where there was none to collect. One that stopped, or goes on, is there still.
[[gnu::noinline]] void note_end(::pid_t child, int const* status) {
    if (child > 0 && (WIFEXITED(*status) || WIFSIGNALED(*status)) && may_call())
        note_process(static_cast<uint32_t>(child), static_cast<uint32_t>(::getpid()), collected, "",
                     static_cast<uint32_t>(*status));
}
template <class Wait>
::pid_t collect(int* status, Wait const& wait) {
    int mine = 0;
    auto* const to = status == nullptr ? &mine : status;
    auto const child = wait(to);
    note_end(child, to);
    return child;
}
KILN_SEEN(waitpid, ::pid_t (*)(::pid_t, int*, int))
[[gnu::noinline]] ::pid_t collect_one(::pid_t which, int* status, int options, waitpid_call real) {
    return collect(status, [&](int* to) { return real(which, to, options); });
}
template <std::size_t Slot>
::pid_t seen_waitpid(::pid_t which, int* status, int options) {
    return collect_one(which, status, options, waitpid_real<Slot>());
}
KILN_SEEN(wait4, ::pid_t (*)(::pid_t, int*, int, ::rusage*))
[[gnu::noinline]] ::pid_t collect_with_use(::pid_t which, int* status, int options, ::rusage* used, wait4_call real) {
    return collect(status, [&](int* to) { return real(which, to, options, used); });
}
template <std::size_t Slot>
::pid_t seen_wait4(::pid_t which, int* status, int options, ::rusage* used) {
    return collect_with_use(which, status, options, used, wait4_real<Slot>());
}
KILN_SEEN(wait, ::pid_t (*)(int*))
[[gnu::noinline]] ::pid_t collect_any(int* status, wait_call real) {
    return collect(status, [&](int* to) { return real(to); });
}
template <std::size_t Slot>
::pid_t seen_wait(int* status) {
    return collect_any(status, wait_real<Slot>());
}
KILN_SEEN(wait3, ::pid_t (*)(int*, int, ::rusage*))
[[gnu::noinline]] ::pid_t collect_any_with_use(int* status, int options, ::rusage* used, wait3_call real) {
    return collect(status, [&](int* to) { return real(to, options, used); });
}
template <std::size_t Slot>
::pid_t seen_wait3(int* status, int options, ::rusage* used) {
    return collect_any_with_use(status, options, used, wait3_real<Slot>());
}
// The same of what waitid() tells.
[[gnu::noinline]] void note_end_of(::siginfo_t const& about) {
    bool const has_exited = about.si_code == CLD_EXITED;
    if (!has_exited && about.si_code != CLD_KILLED && about.si_code != CLD_DUMPED) return;
    int const status = has_exited ? about.si_status << 8 : about.si_status;
    note_end(about.si_pid, &status);
}
KILN_SEEN(waitid, int (*)(::idtype_t, ::id_t, ::siginfo_t*, int))
[[gnu::noinline]] int collect_by_id(::idtype_t which, ::id_t id, ::siginfo_t* about, int options, waitid_call real) {
    ::siginfo_t mine{};
    auto* const to = about == nullptr ? &mine : about;
    int const status = real(which, id, to, options);
    if (status == 0 && (options & WNOWAIT) == 0) note_end_of(*to);
    return status;
}
template <std::size_t Slot>
int seen_waitid(::idtype_t which, ::id_t id, ::siginfo_t* about, int options) {
    return collect_by_id(which, id, about, options, waitid_real<Slot>());
}

}  // namespace

void* observed_wait(char const* name, void* original, libc_calls const& libc) {
    KILN_OBSERVE("waitpid", waitpid);
    KILN_OBSERVE("wait4", wait4);
    KILN_OBSERVE("wait", wait);
    KILN_OBSERVE("wait3", wait3);
    KILN_OBSERVE("waitid", waitid);
    return original;
}

}  // namespace kiln::companion
