// SPDX-License-Identifier: Apache-2.0
// A thread that leaves all signals to the host program's own threads.
#pragma once

#include "base/check.hpp"

#include <cerrno>
#include <csignal>
#include <new>
#include <system_error>
#include <thread>

namespace kiln::base {

// errc::io where the system has no thread left.
template <class Body>
[[nodiscard]] result<std::thread> start_quiet_thread(Body body) {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread out;
    int why = 0;
    try {
        out = std::thread{std::move(body)};
    } catch (std::system_error const& e) {
        why = e.code().value();
    } catch (std::bad_alloc const&) {
        why = ENOMEM;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (why != 0) return io_error("starting a thread", why);
    return out;
}

}  // namespace kiln::base
