// SPDX-License-Identifier: Apache-2.0
//
// What the recorder knows of each thread of the program, from its first call on. Not thread_local: a library that is loaded later gets such
// memory when a thread first touches it, and a process that has none left then is ended by the loader.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kiln::recorder {

// Calls and copies of ours that are under way.
struct call_facts {
    std::uint32_t id = 0;
    int depth = 0;  // calls of ours around this one
    std::uint32_t last_launch = 0;
    // What came to the host is looked at when somebody has waited for it.
    std::uint32_t read_correlation = 0;
    void const* read_to = nullptr;
    std::uint64_t read_bytes = 0;
};

// Python's stacks that were seen before, by what they are made of.
struct known_python_stack {
    std::uint64_t identity = 0;
    std::uint32_t stack = 0;
};

// Native ones, by where on the stack their return addresses lie.
struct return_address {
    std::uintptr_t value = 0;
    std::uintptr_t const* slot = nullptr;  // where on the stack it lies
};
struct known_stack {
    static constexpr int deepest = 16;
    std::uintptr_t depth = 0;
    std::array<return_address, deepest> frames;
    int count = 0;
    std::uint32_t text = 0;
};
struct known_stacks {
    static constexpr std::size_t sets = 16, ways = 4;
    std::array<std::array<known_stack, ways>, sets> all;
    std::array<std::uint8_t, sets> next{};
};

struct open_range {
    std::uint64_t start = 0;  // 0: before the recording
    std::uint32_t name = 0;
};
struct open_ranges {
    static constexpr int deepest = 64;
    std::array<open_range, deepest> all;
    int depth = 0;
};

struct thread_facts {
    call_facts calls;
    std::array<known_python_stack, 256> python_stacks;
    known_stacks native_stacks;
    open_ranges ranges;
    void* exceptions = nullptr;  // the runtime's own
};

// Of the thread that asks; null where there is no memory for it. A thread that has them can take an exception: the runtime's own part of a
// thread comes in the same way, when something is first thrown.
[[nodiscard]] thread_facts* this_thread() noexcept;

}  // namespace kiln::recorder
