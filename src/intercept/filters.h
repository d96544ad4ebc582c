// SPDX-License-Identifier: Apache-2.0
//
// How many filters of system calls (seccomp) a thread is under, in the words of /proc/thread-self/status. C, without libc: the
// loader's hook asks it, too.
#pragma once

#define KILN_STATUS_FILE "/proc/thread-self/status"
#define KILN_STATUS_ROOM 8192

// Where the value begins; null where there is no such line.
static inline char const* kiln_value_in(char const* text, char const* end, char const* line) {
    for (; text < end; ++text) {
        char const* at = text;
        char const* want = line;
        while (*want && at < end && *at == *want) ++at, ++want;
        if (!*want && at < end) return at;
    }
    return 0;
}

// -1: it does not say.
static inline int kiln_filters_in(char const* status, unsigned long bytes) {
    char const* const end = status + bytes;
    char const* at = kiln_value_in(status, end, "\nSeccomp_filters:\t");
    if (!at) {  // Linux before 5.9 tells only that there are some
        at = kiln_value_in(status, end, "\nSeccomp:\t");
        return at ? *at == '2' : -1;
    }
    int count = 0;
    for (; at < end && *at >= '0' && *at <= '9'; ++at) count = count * 10 + (*at - '0');
    return count;
}
