// SPDX-License-Identifier: Apache-2.0
//
// Exports that nothing is known about: a jump to the real library that touches no argument, however many there are. Only the
// first is looked at: a handle of ours becomes one of the real library.
#pragma once

// void* kiln_forward(char const* name, long* first): where to go; `first` is the first argument. Defined by each stand-in.
#if defined(__x86_64__)
#define KILN_FORWARD(name)                                                                \
    asm(".text\n.globl " #name "\n.type " #name ", @function\n" #name                     \
        ":\n"                                                                             \
        "endbr64\n"                                                                       \
        "push %r9\npush %r8\npush %rcx\npush %rdx\npush %rsi\npush %rdi\npush %rax\n"     \
        "lea 1f(%rip), %rdi\nlea 8(%rsp), %rsi\ncall kiln_forward\nmov %rax, %r11\n"      \
        "pop %rax\npop %rdi\npop %rsi\npop %rdx\npop %rcx\npop %r8\npop %r9\njmp *%r11\n" \
        "1: .asciz \"" #name "\"\n.balign 16\n.size " #name ", .-" #name "\n")
#elif defined(__aarch64__)
#define KILN_FORWARD(name)                                                                             \
    asm(".text\n.balign 4\n.globl " #name "\n.type " #name ", %function\n" #name                       \
        ":\n"                                                                                          \
        "hint #34\n"                                                                                   \
        "stp x29, x30, [sp, #-96]!\nmov x29, sp\n"                                                     \
        "stp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\nstp x4, x5, [sp, #48]\nstp x6, x7, [sp, #64]\n" \
        "str x8, [sp, #80]\n"                                                                          \
        "adr x0, 1f\nadd x1, sp, #16\nbl kiln_forward\nmov x16, x0\n"                                  \
        "ldp x0, x1, [sp, #16]\nldp x2, x3, [sp, #32]\nldp x4, x5, [sp, #48]\nldp x6, x7, [sp, #64]\n" \
        "ldr x8, [sp, #80]\nldp x29, x30, [sp], #96\nbr x16\n"                                         \
        "1: .asciz \"" #name "\"\n.balign 4\n.size " #name ", .-" #name "\n")
#endif
