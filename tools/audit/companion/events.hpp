// SPDX-License-Identifier: Apache-2.0
// What the companion writes: events, a link or one append each.
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
bool is_directory(char const* path);  // that one
// Which process this is, whatever its number: the same after an exec. 0: not known. Opens a file.
uint32_t identity();

constexpr std::size_t most_text = 1024;

// As stpcpy: where the text ends.
char* put(char* to, char const* text);
char* put(char* to, uint32_t number);

// From here on others may share the table of descriptors, and nothing is opened in it.
void program_begins();

void note(format::compile_record r, char const* text, uint64_t time);
void note(format::child_record r, char const* text, uint64_t time);
// What is told of a process.
constexpr uint32_t nothing = 0, began = 1, asked_for = 3, collected = 4, out_of_sight = 5, unmade = 6;
void note_process(uint32_t pid, uint32_t parent, uint32_t what, char const* name, uint32_t status);

}  // namespace kiln::companion
