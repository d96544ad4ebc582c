// SPDX-License-Identifier: Apache-2.0
// A program of NVRTC as the stand-in keeps it, and how one is compiled (nvrtc_compile.cpp). See nvrtc.cpp.
#pragma once

#include "standin.hpp"

#include "intercept/real_program.hpp"

namespace kiln::intercept {

struct program {
    foreign_program asked;
    flow_callback watcher;
    int wish = 0;                             // that the watcher has said already, and the compiler has not heard yet
    int cancelling = PTHREAD_CANCEL_DISABLE;  // as it is for the thread that compiles

    void* real = nullptr;                  // not null: the real library answers everything
    std::optional<foreign_answer> answer;  // compiled, and everything about it is known
    // It did not compile. With `real`, which was given virtual names: what its log would say. Without, it was a worker that tried: all it
    // was asked there.
    std::optional<foreign_answer> failure;
    // The options of that answer, or of that failure; none: it was forbidden.
    std::optional<std::vector<std::string>> tried;
    // By an answer that is gone: the real library's live as long as the program.
    decltype(foreign_answer::lowered) names_given;

    // What is known without the real library, if something is.
    [[nodiscard]] foreign_answer const* known() const noexcept {
        if (answer) return &*answer;
        return failure && real == nullptr ? &*failure : nullptr;
    }
    [[nodiscard]] std::string const* log() const noexcept {
        if (answer) return &answer->log;
        return failure ? &failure->log : nullptr;
    }
    // Who hears of it from the real library: the watcher, if there is one.
    [[nodiscard]] flow_callback relay() noexcept;
    // Makes a real program of the record, as it is now, if it is none yet: one that was compiled is compiled, one that failed fails
    // again; where compiles are forbidden neither is. Null when even that is not possible.
    void* as_real();
    // As that, for another compile: what that does not make, a cubin or names, is left by the compile before it. Only the real one knows
    // what comes of it.
    void* as_real_again();
    void forget_answer();
};

// The watcher, if one is named, or the real library.
struct next_call {
    flow_callback watcher;
    int (*compile)(void*, int, char const* const*) = nullptr;
    void* program = nullptr;
    int count = 0;
    char const* const* options = nullptr;
    int* cancelling = nullptr;  // what it was for the thread goes there; null: nobody asks
};

// A compile on its way in which functions of the program are called: its watcher. One that throws, or ends its thread, must find no frame of ours
// that stops it, between it and who called nvrtcCompileProgram(): so that calls it, in a frame that has nothing to clean up. What is left then is
// never destroyed, as little as what the compiler holds.
class compile_steps {
public:
    virtual ~compile_steps() = default;
    compile_steps(compile_steps const&) = delete;
    compile_steps& operator=(compile_steps const&) = delete;

    next_call next;
    // With what it answered. The status of the compile, or nothing: there is a next.
    [[nodiscard]] virtual std::optional<int> go_on(int said) = 0;

protected:
    compile_steps() = default;
};

// A status, or what is to be called first.
struct compile_begun {
    int status = nvrtc_success;
    std::unique_ptr<compile_steps> steps;
};
[[nodiscard]] compile_begun compile_program(program& p, std::vector<std::string> options);
// By the real library, with options that nobody reads.
[[nodiscard]] compile_begun compile_as_it_is(void* real, int count, char const* const* options);

int foreign_create(void** handle, char const* source, char const* name, int count, char const* const* texts,
                   char const* const* names);

struct facts {
    int major = 0, minor = 0;
    std::vector<int> archs;
};
// Kept, so that asking for a version loads no compiler. Null when the real library cannot be asked either.
[[nodiscard]] facts const* compiler_facts();

}  // namespace kiln::intercept
