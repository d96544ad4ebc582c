// SPDX-License-Identifier: Apache-2.0
//
// What hook.c uses of libc, without libc: the loader would map and relocate a second one for the hook in every process, which is
// three quarters of what the hook costs. System calls answer as the kernel does: a negative number is an error.
#pragma once

#include <asm/unistd.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#if defined(__x86_64__)
static long system_call(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long out;
    __asm__ volatile("syscall"
                     : "=a"(out)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return out;
}
#elif defined(__aarch64__)
static long system_call(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "kiln run knows x86_64 and aarch64"
#endif

static int bare_open(char const* path, int flags, int mode) {
    return (int)system_call(__NR_openat, AT_FDCWD, (long)path, flags, mode, 0, 0);
}
static void bare_close(int fd) { system_call(__NR_close, fd, 0, 0, 0, 0, 0); }
static long bare_read(int fd, void* data, size_t bytes) {
    return system_call(__NR_read, fd, (long)data, (long)bytes, 0, 0, 0);
}
static long bare_write(int fd, void const* data, size_t bytes) {
    return system_call(__NR_write, fd, (long)data, (long)bytes, 0, 0, 0);
}
// The kernel's structure is libc's on both machines.
static int bare_stat(char const* path, struct stat* out) {
    return system_call(__NR_newfstatat, AT_FDCWD, (long)path, (long)out, 0, 0, 0) == 0;
}
static int bare_fstat(int fd, struct stat* out) {
    return system_call(__NR_newfstatat, fd, (long)"", (long)out, AT_EMPTY_PATH, 0, 0) == 0;
}
// Null: it could not be mapped. fd -1: fresh memory.
static void* bare_map(size_t bytes, int protection, int fd) {
    int const how = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE;
    long const at = system_call(__NR_mmap, 0, (long)bytes, protection, how, fd, 0);
    return at < 0 && at > -4096 ? 0 : (void*)at;
}
static void bare_unmap(void* at, size_t bytes) { system_call(__NR_munmap, (long)at, (long)bytes, 0, 0, 0, 0); }
static int bare_rename(char const* from, char const* to) {
    return system_call(__NR_renameat2, AT_FDCWD, (long)from, AT_FDCWD, (long)to, 0, 0) == 0;
}
static void bare_unlink(char const* path) { system_call(__NR_unlinkat, AT_FDCWD, (long)path, 0, 0, 0, 0); }
static unsigned bare_geteuid(void) { return (unsigned)system_call(__NR_geteuid, 0, 0, 0, 0, 0, 0); }
static int bare_memory_file(char const* name) { return (int)system_call(__NR_memfd_create, (long)name, 1, 0, 0, 0, 0); }
// The whole of it and a zero.
static int bare_readlink(char const* path, char* to, size_t room) {
    long const length = system_call(__NR_readlinkat, AT_FDCWD, (long)path, (long)to, (long)room, 0, 0);
    if (length <= 0 || (size_t)length >= room) return 0;
    to[length] = 0;
    return 1;
}
static int bare_getcwd(char* to, size_t room) { return system_call(__NR_getcwd, (long)to, (long)room, 0, 0, 0, 0) > 0; }
// How large a file the program may write; more ends it.
static uint64_t bare_largest_file(void) {
    struct {
        uint64_t now, most;
    } limit;
    long const failed = system_call(__NR_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0);
    return failed ? 0 : limit.now;
}
static uint64_t bare_getpid(void) { return (uint64_t)system_call(__NR_getpid, 0, 0, 0, 0, 0, 0); }

// The compiler calls these by itself, too.
__attribute__((visibility("hidden"))) void* memcpy(void* to, void const* from, size_t bytes) {
    for (size_t k = 0; k < bytes; ++k) ((char*)to)[k] = ((char const*)from)[k];
    return to;
}
__attribute__((visibility("hidden"))) void* memmove(void* to, void const* from, size_t bytes) {
    if ((char*)to <= (char const*)from) return memcpy(to, from, bytes);
    while (bytes--) ((char*)to)[bytes] = ((char const*)from)[bytes];
    return to;
}
__attribute__((visibility("hidden"))) void* memset(void* to, int value, size_t bytes) {
    for (size_t k = 0; k < bytes; ++k) ((char*)to)[k] = (char)value;
    return to;
}
__attribute__((visibility("hidden"))) int memcmp(void const* one, void const* other, size_t bytes) {
    unsigned char const *a = one, *b = other;
    for (size_t k = 0; k < bytes; ++k) {
        if (a[k] != b[k]) return a[k] < b[k] ? -1 : 1;
    }
    return 0;
}

// The same for much, both at an address that words can be read from.
static int is_equal(void const* one, void const* other, size_t bytes) {
    uint64_t const *a = one, *b = other;
    size_t k = 0;
    for (; k + 4 <= bytes / 8; k += 4) {
        if ((a[k] ^ b[k]) | (a[k + 1] ^ b[k + 1]) | (a[k + 2] ^ b[k + 2]) | (a[k + 3] ^ b[k + 3])) return 0;
    }
    return !memcmp(a + k, b + k, bytes - k * 8);
}

static size_t length_of(char const* text) {
    size_t n = 0;
    while (text[n]) ++n;
    return n;
}
static int is_same(char const* one, char const* other) {
    while (*one && *one == *other) ++one, ++other;
    return *one == *other;
}
static int starts_with(char const* text, char const* start) {
    while (*start && *text == *start) ++text, ++start;
    return *start == 0;
}
// Null where there is none.
static char* last_slash(char const* text) {
    char const* out = 0;
    for (; *text; ++text) out = *text == '/' ? text : out;
    return (char*)out;
}
static unsigned char* find_in(unsigned char* data, size_t bytes, char const* what) {
    size_t const length = length_of(what);
    for (size_t k = 0; k + length <= bytes; ++k) {
        if (data[k] == (unsigned char)what[0] && !memcmp(data + k, what, length)) return data + k;
    }
    return 0;
}

// All texts after one another; the last argument is null. 0, and `to` empty, where there is no room.
static size_t join(char* to, size_t room, ...) {
    va_list texts;
    va_start(texts, room);
    size_t at = 0;
    char const* one;
    while ((one = va_arg(texts, char const*))) {
        size_t const length = length_of(one);
        if (at + length >= room) {
            at = 0;
            break;
        }
        memcpy(to + at, one, length);
        at += length;
    }
    va_end(texts);
    to[at] = 0;
    return at;
}

// 16 digits and a zero.
static void write_hex(char* to, uint64_t number) {
    for (int k = 15; k >= 0; --k, number >>= 4) to[k] = "0123456789abcdef"[number & 15];
    to[16] = 0;
}

// 20 digits at most, and a zero.
static void write_decimal(char* to, uint64_t number) {
    char digits[20];
    int count = 0;
    do digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count) *to++ = digits[--count];
    *to = 0;
}
