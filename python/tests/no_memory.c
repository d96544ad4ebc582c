// SPDX-License-Identifier: Apache-2.0
// Preloaded into an interpreter, lets memory run out at a chosen place: no_memory(FIRST, LAST) counts what asks for memory from there on, threads
// too, which need stacks, and refuses what has these numbers; no_memory(-1, -1) is as before. no_memory_asked() tells how often that was.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static long asked = 0, first = -1, last = -1;

void no_memory(long from, long to) {
    asked = 0;
    last = to;
    __atomic_store_n(&first, from, __ATOMIC_SEQ_CST);
}
long no_memory_asked(void) { return asked; }

static int is_refused(void) {
    if (__atomic_load_n(&first, __ATOMIC_SEQ_CST) < 0) return 0;
    long const number = __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
    if (number < first || number > last) return 0;
    errno = ENOMEM;
    return 1;
}

void* malloc(size_t size) { return is_refused() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return is_refused() ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return size > 0 && is_refused() ? NULL : __libc_realloc(old, size); }
void* memalign(size_t to, size_t size) { return is_refused() ? NULL : __libc_memalign(to, size); }
void* aligned_alloc(size_t to, size_t size) { return memalign(to, size); }
int posix_memalign(void** out, size_t to, size_t size) {
    void* const made = memalign(to, size);
    if (made == NULL) return ENOMEM;
    *out = made;
    return 0;
}

void* mmap(void* at, size_t size, int access, int flags, int fd, off_t offset) {
    static void* (*next)(void*, size_t, int, int, int, off_t);
    if (next == NULL) next = dlsym(RTLD_NEXT, "mmap");
    return is_refused() ? MAP_FAILED : next(at, size, access, flags, fd, offset);
}
int pthread_create(pthread_t* out, pthread_attr_t const* how, void* (*body)(void*), void* with) {
    static int (*next)(pthread_t*, pthread_attr_t const*, void* (*)(void*), void*);
    if (next == NULL) next = dlsym(RTLD_NEXT, "pthread_create");
    return is_refused() ? EAGAIN : next(out, how, body, with);
}
