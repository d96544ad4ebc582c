// SPDX-License-Identifier: Apache-2.0
//
// Lets somebody else answer the fopen calls of one shared library (and the stat and mmap calls around them). The library's own import slots are pointed at Kiln's
// function, so nothing else in the process is touched; outside a capture the calls go to libc as before. What the library would do to the
// program's SIGINT and SIGTERM is left undone for good.
#pragma once

#include "base/check.hpp"
#include "compile/environment.hpp"
#include "compile/header_answers.hpp"

#include <cstdint>
#include <optional>

namespace kiln::compile {

// `library` is a handle from dlopen. Done once per library; errc::unsupported when it does not import fopen.
[[nodiscard]] result<void> hook_opens(void* library);
// It is about to be closed: the next may have the same handle.
void forget_hooks(void* library);

// One compile of this thread, and who answers what it opens: the compiler reads on the thread that asked it. In a function of the program that it
// calls there may be another.
class thread_turn {
public:
    thread_turn(thread_turn const&) = delete;
    thread_turn& operator=(thread_turn const&) = delete;

    // Around a function of the program that the compiler calls. It may leave for good, by longjmp() even: then nothing of ours is in force any
    // more, and nobody is needed to put it right. Null: there is none.
    [[nodiscard]] static thread_turn* put_aside() noexcept;
    static void take_up(thread_turn* again) noexcept;

    [[nodiscard]] header_answers* answers() const noexcept { return answers_; }

protected:
    // As usual: this thread computes so, because what is kept is for everybody.
    enum class arithmetic { as_usual, of_the_program };
    thread_turn(header_answers* answers, arithmetic how);
    ~thread_turn();

private:
    header_answers* const answers_;  // null: nobody
    thread_turn* const before_;
    bool const is_first_;  // of this thread
    arithmetic const how_;
    std::optional<computing_as_usual> usual_;
};

// While one of these lives, the hooked library's opens on any thread but those of other turns go to `answers`. NVRTC's front end is serialised
// inside a process, and so are these: a second one waits. Not where the compiler calls functions of the program.
class scoped_capture : thread_turn {
public:
    explicit scoped_capture(header_answers& answers);
    ~scoped_capture();
};

// The same for the opens of this thread alone. Nobody waits.
class thread_capture : thread_turn {
public:
    explicit thread_capture(header_answers& answers);
    // False: something was opened on a thread that nobody knows, perhaps by a compiler that has some of its own.
    [[nodiscard]] bool has_seen_all() const noexcept;

private:
    std::uint64_t const unknown_before_;
};

// What is compiled while one of these lives reads from no capture. Any number of them at a time.
class without_capture : thread_turn {
public:
    without_capture() : thread_turn{nullptr, arithmetic::of_the_program} {}
};

// This process is the child of one in which another thread was compiling: what that held of the compiler nobody lets go of, and who
// compiles here may wait for ever, as without us.
[[nodiscard]] bool was_compiler_left_busy() noexcept;

}  // namespace kiln::compile
