// SPDX-License-Identifier: Apache-2.0
//
// What its libc is asked for is known without a call: a lock is noted before it is set, since from then on nobody may ask.
#include "lock.hpp"

#include "file_limit.hpp"

#include <atomic>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln::companion {

namespace {

using std::uint32_t;

int lock_at_first = 0;
std::atomic<bool> is_walled_in{false};
constexpr long restrict_self = 446;  // landlock_restrict_self of Linux 5.13
// Only ever set: a lock stays, and children have it, too.
std::atomic<bool> is_locked_in{false};
// Calls under way that may lock the thread that makes them, or all of them. A child that is forked by another thread has nothing of the
// former. Of the latter nobody can tell it whether they came first: it stays silent.
thread_local uint32_t locking_this_thread = 0;
uint32_t locking_all_threads = 0;

// Children that share this memory (vfork) lock themselves in, and not it. The kernel sets `process` to 0 when one goes, or becomes another
// program.
struct guest {
    uint32_t process;
    void* thread;  // which it shares with who made it
};
guest guests[8];

bool is_locked_guest() {
    for (auto const& g : guests)
        if (held(g.process) != 0 && held(g.thread) == __builtin_thread_pointer()) return true;
    return false;
}
// Threads, and children of fork(), have told the kernel an address of their own. Null: it is none, or there are too many.
[[gnu::noinline]] guest* enter_as_guest() {
    void* told = nullptr;
    if (::prctl(PR_GET_TID_ADDRESS, &told) != 0 || told != nullptr) return nullptr;
    for (auto& g : guests) {
        uint32_t nobody = 0;
        if (!std::atomic_ref{g.process}.compare_exchange_strong(nobody, static_cast<uint32_t>(::getpid()))) continue;
        std::atomic_ref{g.thread}.store(__builtin_thread_pointer());
        ::syscall(SYS_set_tid_address, &g.process);
        return &g;
    }
    return nullptr;
}
void leave(guest& g) {
    ::syscall(SYS_set_tid_address, nullptr);
    std::atomic_ref{g.process}.store(0);
}

enum class threads { this_one, all };

// What it gave back, and whether that says that it is locked in now.
struct outcome {
    long status;
    bool is_locked;
};
template <class Lock>
long lock_in(threads which, Lock const& lock) {
    if (is_locked_guest()) return lock().status;
    if (auto* const g = may_call() ? enter_as_guest() : nullptr; g != nullptr) {
        outcome const is = lock();
        if (!is.is_locked) leave(*g);
        return is.status;
    }
    std::atomic_ref under_way{which == threads::all ? locking_all_threads : locking_this_thread};
    ++under_way;
    outcome const is = lock();
    if (is.is_locked) is_locked_in = true;
    --under_way;
    return is.status;
}

using word = unsigned long;
// Newer than the headers of some systems: PR_SET_SYSCALL_USER_DISPATCH of Linux 5.11, SECCOMP_FILTER_FLAG_NEW_LISTENER of 5.0.
constexpr int set_dispatch = 59;
constexpr word new_listener = 1u << 3;

// Not where there is no filter: so one asks whether there could be any. Calls that are dispatched to the program are as good as locked.
bool locks(word what, word how, word filter) {
    if (what == set_dispatch) return how != 0;
    return what == PR_SET_SECCOMP && (how == SECCOMP_MODE_STRICT || filter != 0);
}

// In registers, however many were given: libc takes them all, too.
KILN_SEEN(prctl, int (*)(int, word, word, word, word))
[[gnu::noinline]] int lock_by_prctl(int what, word a, word b, word c, word d, prctl_call real) {
    if (!locks(static_cast<word>(what), a, b)) return real(what, a, b, c, d);
    return static_cast<int>(lock_in(threads::this_one, [&] {
        int const status = real(what, a, b, c, d);
        return outcome{status, status == 0};
    }));
}
template <std::size_t Slot>
int seen_prctl(int what, word a, word b, word c, word d) {
    auto const real = prctl_real<Slot>();
    bool const may_lock = what == PR_SET_SECCOMP || what == set_dispatch;
    return may_lock ? lock_by_prctl(what, a, b, c, d, real) : real(what, a, b, c, d);
}

// The last of six words is in no register there: it stays where the caller put it, or did not. What cannot be a lock is a jump, after which the
// original finds the stack as it was; rt_sigreturn needs it so. Neither prctl nor seccomp has as many words.
#if defined(__x86_64__)
#define KILN_SIXTH(...)
#else
#define KILN_SIXTH(...) , __VA_ARGS__
#endif
KILN_SEEN(syscall, long (*)(long, word, word, word, word, word KILN_SIXTH(word)))
bool locks_by_number(long number, word a, word b, word c) {
    if (number == SYS_prctl) return locks(a, b, c);
    return number == SYS_seccomp && (a == SECCOMP_SET_MODE_STRICT || (a == SECCOMP_SET_MODE_FILTER && c != 0));
}
[[gnu::noinline]] long lock_by_number(long number, word a, word b, word c, word d, word e, syscall_call real) {
    if (!locks_by_number(number, a, b, c)) return real(number, a, b, c, d, e KILN_SIXTH(0));
    bool const is_for_all = number == SYS_seccomp && (b & SECCOMP_FILTER_FLAG_TSYNC) != 0;
    bool const gives_listener = number == SYS_seccomp && (b & new_listener) != 0;
    return lock_in(is_for_all ? threads::all : threads::this_one, [&] {
        long const status = real(number, a, b, c, d, e KILN_SIXTH(0));
        // More than 0 is the thread that could not be locked, too.
        return outcome{status, status == 0 || (status > 0 && gives_listener)};
    });
}
template <std::size_t Slot>
long seen_syscall(long number, word a, word b, word c, word d, word e KILN_SIXTH(word f)) {
    auto const real = syscall_real<Slot>();
    if (number == restrict_self) is_walled_in = true;
    if (number == SYS_prctl || number == SYS_seccomp) return lock_by_number(number, a, b, c, d, e, real);
    return real(number, a, b, c, d, e KILN_SIXTH(f));
}
#undef KILN_SIXTH

}  // namespace

bool may_call() {
    if (is_locked_in || held(locking_this_thread) != 0 || held(locking_all_threads) != 0) return false;
    for (auto const& g : guests)
        if (held(g.process) != 0) return false;
    return !kiln::audit::has_locked_itself_in(lock_at_first);
}

bool may_be_walled_in() { return is_walled_in; }

void remember_lock() { lock_at_first = kiln::audit::lock_of_process(); }

void* observed_lock(char const* name, void* original, libc_calls const& libc) {
    KILN_OBSERVE("prctl", prctl);
    KILN_OBSERVE("syscall", syscall);
    return original;
}

}  // namespace kiln::companion
