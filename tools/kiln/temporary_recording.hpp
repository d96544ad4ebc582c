// SPDX-License-Identifier: Apache-2.0
// The folder of a recording that nobody keeps: made, and removed again whatever ends us.
#pragma once

#include "base/check.hpp"

#include <csignal>
#include <string>
#include <sys/types.h>
#include <utility>

namespace kiln::cli {

// In TMPDIR, or where else temporary files go. errc::io with a remedy where none can be made. Names are said from the root: the program may
// change its own folder.
class temporary_recording {
public:
    [[nodiscard]] static result<temporary_recording> make();
    [[nodiscard]] std::string const& path() const { return path_; }

    // Only what was made, by what it is: another folder in its place is the program's. Of a link there the link goes. 0, or the errno of what
    // keeps it where left_at() says. Nothing but system calls: it may be done in a signal's handler.
    [[nodiscard]] int remove() const;
    [[nodiscard]] std::string left_at() const;

private:
    explicit temporary_recording(std::string path);
    [[nodiscard]] int open() const;

    std::string path_;
    std::string doomed_;  // its name while it is emptied, so that nobody puts more into it
    std::pair<::dev_t, ::ino_t> is_{};
};

// While this lives, a signal that ends us removes the folder first. Not around the program itself: its signals are its own.
class removal_by_signals {
public:
    explicit removal_by_signals(temporary_recording const& what);
    ~removal_by_signals();
    removal_by_signals(removal_by_signals const&) = delete;
    removal_by_signals& operator=(removal_by_signals const&) = delete;

private:
    static constexpr int signals[] = {SIGHUP,  SIGINT,    SIGQUIT, SIGTERM, SIGUSR1,
                                      SIGUSR2, SIGVTALRM, SIGALRM, SIGPROF, SIGXCPU};
    struct ::sigaction before_[std::size(signals)] = {};
};

}  // namespace kiln::cli
