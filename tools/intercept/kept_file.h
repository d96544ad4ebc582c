// SPDX-License-Identifier: Apache-2.0
//
// Files that hook.c keeps for the processes to come: each is there whole or not at all, and is looked at, byte by byte, before it is used.
#pragma once

#include "image.h"

#define MOST_PATH 512

static uint64_t mixed(uint64_t h, void const* data, size_t bytes) {
    for (unsigned char const* c = data; bytes--; ++c) h = (h ^ *c) * 1099511628211u;
    return h;
}

static int write_whole(int fd, unsigned char const* data, size_t bytes) {
    while (bytes) {
        long const n = bare_write(fd, data, bytes);
        if (n <= 0) return 0;
        data += n;
        bytes -= (size_t)n;
    }
    return 1;
}

// A program that has closed its standard streams may go on writing to them, in the middle of a file of ours that got such a number. What is
// opened after this stands above them: in their places stays what is neither read nor written, so the program is told EBADF, as before.
// Before it runs it is to find them closed when it looks, and nobody writes but threads that its constructors start.
static int program_runs;
static void occupy_standard_streams(void) {
    if (!program_runs) return;
    int fd;
    do fd = bare_open("/dev/null", O_PATH | O_CLOEXEC, 0);
    while (fd >= 0 && fd <= 2);
    if (fd >= 0) bare_close(fd);
}

// The file appears whole or not at all, and not where nothing may be executed. In every container a process has the same number:
// what one that was killed has left must not stand in the way of all that follow.
static int publish(char const* path, unsigned char const* data, size_t bytes) {
    static char part[MOST_PATH + 32];
    char process[17];
    uint64_t const who[] = {bare_getpid(), (uintptr_t)process, (uintptr_t)part};  // where things lie is another place each time
    write_hex(process, mixed(14695981039346656037u, who, sizeof who));
    if (bytes > bare_largest_file()) return 0;  // a limit of the program's, and a signal that would end it
    if (!join(part, sizeof part, path, ".", process, ".part", (char*)0)) return 0;
    occupy_standard_streams();
    int const fd = bare_open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (fd < 0) return 0;
    void* const trial = write_whole(fd, data, bytes) ? bare_map(4096, PROT_READ | PROT_EXEC, fd) : 0;
    if (trial) bare_unmap(trial, 4096);
    bare_close(fd);
    int const good = trial && bare_rename(part, path);
    if (!good) bare_unlink(part);
    return good;
}

// Whether that file is there already, byte by byte: one that was damaged, or torn by a loss of power, would end the program.
static int is_there(char const* path, unsigned char const* data, size_t bytes) {
    struct image kept;
    int const same = map_file(&kept, path) && kept.size == bytes && kept.about.st_uid == bare_geteuid() && is_equal(kept.bytes, data, bytes);
    unmap(&kept);
    return same;
}

static int keep(char const* path, unsigned char const* data, size_t bytes) {
    return is_there(path, data, bytes) || publish(path, data, bytes);
}

static int exists(char const* path) {
    struct stat about;
    return bare_stat(path, &about);
}
