// SPDX-License-Identifier: Apache-2.0
//
// Lets somebody else answer the fopen calls of one shared library (and the stat and mmap calls around them). The library's own import slots are pointed at Kiln's
// function, so nothing else in the process is touched; outside a capture the calls go to libc as before.
#pragma once

#include "base/check.hpp"
#include "compile/environment.hpp"
#include "compile/header_answers.hpp"

namespace kiln::compile {

// `library` is a handle from dlopen. Done once per library; errc::unsupported when it does not import fopen.
[[nodiscard]] result<void> hook_opens(void* library);
// It is about to be closed: the next may have the same handle.
void forget_hooks(void* library);

// While one of these lives, the hooked library's opens on any thread go to `answers`, and this thread computes as usual, because what is
// kept is for everybody. NVRTC's front end is serialised inside a process, and so are these: a second one waits.
class scoped_capture {
public:
    explicit scoped_capture(header_answers& answers);
    ~scoped_capture();
    scoped_capture(scoped_capture const&) = delete;
    scoped_capture& operator=(scoped_capture const&) = delete;

private:
    computing_as_usual usual_;
};

// While one of these lives there is no capture: what is compiled reads from nobody else's. Any number of them at a time.
class without_capture {
public:
    without_capture();
    ~without_capture();
    without_capture(without_capture const&) = delete;
    without_capture& operator=(without_capture const&) = delete;
};

// This process is the child of one in which another thread was compiling: what that held of the compiler nobody lets go of, and who
// compiles here may wait for ever, as without us.
[[nodiscard]] bool was_compiler_left_busy() noexcept;

}  // namespace kiln::compile
