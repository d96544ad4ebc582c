// SPDX-License-Identifier: Apache-2.0
//
// The end of a program and the compiles that run in it. A compile cannot be interrupted, and the exit functions of the compilers take away
// what it uses: NVRTC and nvJitLink register thousands while they are loaded, and some more in the first compile of a process. Each of them waits
// until the compiles are done, ten seconds at most, all together.
#pragma once

#include "base/check.hpp"
#include "base/watched_load.hpp"

namespace kiln::compile {

// A compile, from before it has a thread: the end of the program waits for it. A child of fork() has its parent's only where it is the compile's
// thread that forked.
class compile_in_program {
public:
    compile_in_program() noexcept;
    ~compile_in_program();
    compile_in_program(compile_in_program const&) = delete;
    compile_in_program& operator=(compile_in_program const&) = delete;

    // By the thread that compiles, which may end the program itself: it does not wait for its own. Until done() it is the one of this thread.
    void runs_here() noexcept;
    void done() noexcept;

private:
    bool is_counted_ = true;
};

// Once it is, nothing is begun any more.
[[nodiscard]] bool is_program_ending() noexcept;

// Before a compiler is loaded or called. Fails in a child of a fork() during which another thread of its parent compiled: whoever would
// open the locks of the compiler and of its loading again is not here. Such a child leaves the compiler's exit functions undone.
[[nodiscard]] result<void> check_compilers();

// For whoever loads a compiler: all that it registers is then kept waiting. Null where this thread does not compile for a program: workers are
// ended by a signal.
[[nodiscard]] base::load_watcher watcher_of_exit_functions() noexcept;

// Before each compile: the same for a compiler that nobody has watched, because the program had loaded it before us. `library` is a handle from dlopen,
// never closed. Where its calls cannot be seen, what it registers in its first compile runs too early.
void keep_exit_functions(void* library);

}  // namespace kiln::compile
