// SPDX-License-Identifier: Apache-2.0
//
// The Python stack of the calling thread, read without the interpreter's lock and without running Python: a thread's own
// frames stand still while it is inside a call of CUDA's, and they hold their code objects. The offsets are those of one minor
// version each, 64-bit release builds; the first walk goes through process_vm_readv and must find names that look like
// names, so that a Python built differently turns stacks off instead of ending the program.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::recorder {

struct python_frame {
    void const* code = nullptr;
    long instruction = 0;
};

class python_frames {
public:
    // Of a deep stack its two ends: between the user's line and the call lie a framework's many, and between the program and its loop others.
    static constexpr int innermost = 16, outermost = 8, deepest = innermost + outermost;

    // Whether the process has a Python, known or not.
    static bool is_here() noexcept;
    // How many frames, innermost first; 0: no Python on this thread, or stacks are off.
    static int take(python_frame* out) noexcept;
    // 311 to 313; 0: not looked yet or off. `why_off()` says why.
    static unsigned version() noexcept;
    static char const* why_off() noexcept;

    // "file\tline\tfunction\n" for each.
    static std::string text(python_frame const* frames, int count);
    // Differs where a code object was freed and another one took its place.
    static std::uint64_t identity(python_frame const* frames, int count) noexcept;
};

}  // namespace kiln::recorder
