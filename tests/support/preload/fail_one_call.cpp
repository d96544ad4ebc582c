// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a program, counts its calls of the C library's wrappers of system calls and lets one of them fail. By variable:
//
//     FAULT_PROGRAM   the program's file name; others that inherit the variables are left alone
//     FAULT_BOARD     a file of board_bytes zeros: what was called how often, for whoever started the program
//     FAULT           "CALL N HOW": the N-th call of CALL, from 1, fails with errno HOW, or is cut to half its length where HOW
//                     is -1. None: only count
//     FAULT_FILES     a file that the name of everything that is opened goes to, a line each; none without it
//
// Everything is passed on as six words, as both calling conventions of 64-bit Linux allow; so no header that declares what is
// defined here is included.
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

extern "C" {
[[noreturn]] void abort();
char* getenv(char const*);
long strtol(char const*, char**, int);
}

namespace {

using function = long(long, long, long, long, long, long);

struct place {
    char name[24];
    uint64_t calls;
};
constexpr int most_places = 96;
struct board {
    uint64_t failed;
    place places[most_places];
};

// What a call that fails gives back.
enum class failure { minus_one, null, number, after_the_call };

board* shown = nullptr;
int opened = -1;
char chosen[24];
uint64_t chosen_number = 0;
int chosen_error = 0;

function* real(char const* name) { return reinterpret_cast<function*>(dlsym(RTLD_NEXT, name)); }

template <class T>
long word(T value) {
    return reinterpret_cast<long>(value);
}

bool is_the_program(char const* wanted) {
    char path[4096];
    auto const size = real("readlink")(word("/proc/self/exe"), word(path), sizeof path - 1, 0, 0, 0);
    if (wanted == nullptr || size <= 0) return false;
    path[size] = 0;
    return strcmp(strrchr(path, '/') + 1, wanted) == 0;
}

__attribute__((constructor)) void begin() {
    auto const* const file = getenv("FAULT_BOARD");
    if (file == nullptr || !is_the_program(getenv("FAULT_PROGRAM"))) return;
    if (auto const* text = getenv("FAULT")) {
        auto const* const blank = strchr(text, ' ');
        if (blank == nullptr || blank - text >= static_cast<long>(sizeof chosen)) abort();
        memcpy(chosen, text, static_cast<size_t>(blank - text));
        char* rest = nullptr;
        chosen_number = static_cast<uint64_t>(strtol(blank, &rest, 10));
        chosen_error = static_cast<int>(strtol(rest, nullptr, 10));
    }
    constexpr long read_write = 2, close_on_exec = 02000000, both_ways = 3, shared = 1;
    auto const fd = real("open")(word(file), read_write | close_on_exec, 0, 0, 0, 0);
    if (static_cast<int>(fd) < 0) abort();
    auto const at = real("mmap")(0, sizeof(board), both_ways, shared, fd, 0);
    real("close")(fd, 0, 0, 0, 0, 0);
    if (at == -1) abort();
    shown = reinterpret_cast<board*>(at);
    constexpr long write_only = 1, create = 0100, append = 02000, by_its_owner = 0600;
    if (auto const* names = getenv("FAULT_FILES"))
        opened = static_cast<int>(
            real("open")(word(names), write_only | create | append | close_on_exec, by_its_owner, 0, 0, 0));
}

// One call for a line: lines of several threads and processes do not mix.
void note_opened(long path) {
    char line[4096];
    auto const* const name = reinterpret_cast<char const*>(path);
    if (opened < 0 || name == nullptr || strlen(name) >= sizeof line) return;
    auto const length = strlen(name);
    memcpy(line, name, length);
    line[length] = '\n';
    real("write")(opened, word(line), static_cast<long>(length) + 1, 0, 0, 0);
}

// 0: as it is.
int fate_of(int index, char const* name) {
    if (shown == nullptr) return 0;
    auto& p = shown->places[index];
    if (p.name[0] == 0) strncpy(p.name, name, sizeof p.name - 1);
    auto const number = __atomic_add_fetch(&p.calls, 1, __ATOMIC_RELAXED);
    if (number != chosen_number || strcmp(chosen, name) != 0) return 0;
    __atomic_add_fetch(&shown->failed, 1, __ATOMIC_RELAXED);
    return chosen_error;
}

}  // namespace

#define FAILS_AS(name, how, index, shown_as, opens)                                \
    extern "C" long name(long a, long b, long c, long d, long e, long f) {         \
        static function* const next = real(#name);                                 \
        note_opened(opens);                                                        \
        auto const fate = fate_of(index, shown_as);                                \
        if (fate < 0) return next(a, b, c > 1 ? c / 2 : c, d, e, f);               \
        if (fate == 0) return next(a, b, c, d, e, f);                              \
        if (failure::how == failure::number) return fate;                          \
        if (failure::how == failure::after_the_call) (void)next(a, b, c, d, e, f); \
        errno = fate;                                                              \
        return failure::how == failure::null ? 0 : -1;                             \
    }
#define FAILS(name, how) FAILS_AS(name, how, __COUNTER__, #name, 0)
#define OPENS(name, how, path) FAILS_AS(name, how, __COUNTER__, #name, path)

// Eight bytes are an event's, which fail in fewer ways than a file's.
FAILS_AS(read, minus_one, c == 8 ? 90 : 91, c == 8 ? "read8" : "read", 0)
FAILS_AS(write, minus_one, c == 8 ? 92 : 93, c == 8 ? "write8" : "write", 0)

OPENS(open, minus_one, a)
OPENS(openat, minus_one, b)
FAILS(close, after_the_call)  // Linux has closed it all the same
FAILS(pread, minus_one)
FAILS(pwrite, minus_one)
FAILS(send, minus_one)
FAILS(recv, minus_one)
FAILS(lseek, minus_one)
FAILS(ftruncate, minus_one)
FAILS(fsync, minus_one)
FAILS(stat, minus_one)
FAILS(lstat, minus_one)
FAILS(fstat, minus_one)
FAILS(fstatat, minus_one)
FAILS(statx, minus_one)
FAILS(statfs, minus_one)
FAILS(fstatfs, minus_one)
FAILS(access, minus_one)
FAILS(readlink, minus_one)
FAILS(realpath, null)
FAILS(getcwd, null)
FAILS(chdir, minus_one)
FAILS(mkdir, minus_one)
FAILS(mkdtemp, null)
FAILS(rmdir, minus_one)
FAILS(rename, minus_one)
FAILS(link, minus_one)
FAILS(linkat, minus_one)
FAILS(unlink, minus_one)
FAILS(unlinkat, minus_one)
FAILS(utimensat, minus_one)
FAILS(flock, minus_one)
FAILS(fcntl, minus_one)
OPENS(opendir, null, a)
FAILS(fdopendir, null)
FAILS(readdir, null)
OPENS(fopen, null, a)
FAILS(fdopen, null)
FAILS(mmap, minus_one)
FAILS(mprotect, minus_one)
FAILS(memfd_create, minus_one)
FAILS(eventfd, minus_one)
FAILS(socketpair, minus_one)
FAILS(socket, minus_one)
FAILS(connect, minus_one)
FAILS(getaddrinfo, number)
FAILS(getsockopt, minus_one)
FAILS(poll, minus_one)
FAILS(ppoll, minus_one)
FAILS(posix_spawn, number)
FAILS(posix_spawnp, number)
FAILS(pthread_create, number)
FAILS(waitpid, minus_one)
FAILS(kill, minus_one)
FAILS(prctl, minus_one)
FAILS(setrlimit, minus_one)
FAILS(getrandom, minus_one)

// Those that have no wrapper of their own in older C libraries; the rest (futex) is the language's.
extern "C" long syscall(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__aarch64__)
    constexpr long getdents64 = 61, renameat2 = 276;
#else
    constexpr long getdents64 = 217, renameat2 = 316;
#endif
    using seven = long(long, long, long, long, long, long, long);
    static auto* const next = reinterpret_cast<seven*>(dlsym(RTLD_NEXT, "syscall"));
    auto const fate = number == getdents64  ? fate_of(__COUNTER__, "getdents64")
                      : number == renameat2 ? fate_of(__COUNTER__, "renameat2")
                                            : 0;
    if (fate == 0) return next(number, a, b, c, d, e, f);
    errno = fate;
    return -1;
}
