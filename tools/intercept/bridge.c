// SPDX-License-Identifier: Apache-2.0
//
// A form that hook.c fills in: every function is a jump to where its slot says, which is one of the stand-in that the bridge needs. What that is
// called, the soname and the run path are filled in, too. Two slots come first: for when the bridge is opened and closed.
#include "exports.h"

#if defined(__x86_64__)
#define KILN_JUMP(name)                                                                      \
    ".balign 16\n.globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" \
    "endbr64\njmp *kiln_slots+kiln_at(%rip)\n.cfi_endproc\n.size " #name ", .-" #name "\n.set kiln_at, kiln_at + 8\n"
#elif defined(__aarch64__)
#define KILN_JUMP(name)                                                                      \
    ".balign 16\n.globl " #name "\n.type " #name ", %function\n" #name ":\n.cfi_startproc\n" \
    "hint #34\nadrp x16, kiln_slots+kiln_at\nldr x16, [x16, #:lo12:kiln_slots+kiln_at]\nbr x16\n.cfi_endproc\n" \
    ".size " #name ", .-" #name "\n.set kiln_at, kiln_at + 8\n"
#endif
#define KILN_JUMP_OF(function, minor) KILN_JUMP(__nvJitLink##function##_##minor)

__asm__(".text\n.set kiln_at, 16\n" KILN_NVRTC_EXPORTS(KILN_JUMP) KILN_NVJITLINK_EXPORTS(KILN_JUMP) KILN_NVJITLINK_OF_MINORS(KILN_JUMP_OF)
        ".data\n.balign 16\nkiln_slots:\n.ascii \"KILN_SLOTS_\"\n.fill kiln_at - 11, 1, 'S'\n.byte 0\n.text\n");

extern void (*kiln_slots[2])(void) __attribute__((visibility("hidden")));

__attribute__((constructor)) static void opened(void) {
    if (kiln_slots[0]) kiln_slots[0]();
}
__attribute__((destructor)) static void closed(void) {
    if (kiln_slots[1]) kiln_slots[1]();
}
