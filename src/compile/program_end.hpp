// SPDX-License-Identifier: Apache-2.0
//
// The end of a program and the compiles that run in it. A compile cannot be interrupted, and the exit functions of the compilers take away
// what it uses: NVRTC and nvJitLink register thousands while they are loaded, and some more in the first compile of a process. Each of them waits
// until the compiles are done, ten seconds at most, all together.
//
// Not mended: what is registered while a compiler is being loaded, some ten milliseconds once in a process, is not seen. Then a program must not be
// ended by another thread than its first, or by one that has not asked for anything, or where no worker is found and none was chosen.
#pragma once

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
    friend void keep_exit_functions(void* library);
    friend struct compiles_of_parent;
    void compiler_is_open() noexcept;

    bool is_counted_ = true;
    bool is_opening_ = true;  // its compiler may be registering what nobody sees
};

// Once it is, nothing is begun any more.
[[nodiscard]] bool is_program_ending() noexcept;

// Before each compile, as soon as its compiler is open. `library` is a handle from dlopen, never closed. Where its calls cannot be seen, what it
// registers in its first compile runs too early.
void keep_exit_functions(void* library);

// By a thread that asks for compiles in this process, and may end it: exit() on the program's first thread then waits, before anything else, for a
// compiler that is just being loaded. What holds Kiln stays loaded as long as that thread.
void wait_at_end_of_this_thread() noexcept;

}  // namespace kiln::compile
