// SPDX-License-Identifier: Apache-2.0
// What the companion writes: events, one append each.
#pragma once

#include "audit/recording_format.hpp"

#include <climits>
#include <cstddef>
#include <cstdint>

namespace kiln::companion {

namespace format = kiln::audit::format;
using std::uint16_t, std::uint32_t, std::uint64_t;

uint64_t now_ns();
uint32_t thread_id();

// Where they go. False: it cannot be named.
bool set_directory(char const* path);

// Whether we may ask the system for anything. Not once the process has locked itself in (seccomp), where a call that it did not allow is its
// end: whoever is called by the program asks here first of all.
bool may_call();
// The lock it had when it began, a container's own for one.
void remember_lock();
// It is about to lock itself in, or could not: what its libc is asked for is known without a call. Gives back what was known before.
bool set_locked_in(bool is_locked_in);

constexpr std::size_t most_text = 1024;

// As stpcpy: where the text ends.
char* put(char* to, char const* text);
char* put(char* to, uint32_t number);

void note(format::compile_record r, char const* text, uint64_t time);
void note(format::child_record r, char const* text, uint64_t time);
void note_process(uint32_t pid, uint32_t parent, uint32_t what, char const* name, uint32_t status);

}  // namespace kiln::companion
