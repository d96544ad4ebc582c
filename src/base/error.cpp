// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace kiln {

std::string_view name_of(errc code) noexcept {
    switch (code) {
        case errc::invalid_argument: return "invalid-argument";
        case errc::unsupported: return "unsupported";
        case errc::not_found: return "not-found";
        case errc::io: return "io";
        case errc::corrupt: return "corrupt";
        case errc::compile_failed: return "compile-failed";
        case errc::link_failed: return "link-failed";
        case errc::worker_failed: return "worker-failed";
        case errc::timeout: return "timeout";
        case errc::cancelled: return "cancelled";
        case errc::out_of_memory: return "out-of-memory";
        case errc::no_device: return "no-device";
        case errc::driver: return "driver";
        case errc::forbidden: return "forbidden";
        case errc::internal: return "internal";
    }
    return "unknown";
}

error io_error(std::string_view what, int number) {
    char text[128] = {};
    // GNU strerror_r returns the text, which need not be in the buffer.
    return fail(errc::io, "{}: {}", what, ::strerror_r(number, text, sizeof text)).with_status(number);
}

namespace base {

void assertion_failed(char const* expression, char const* file, int line) noexcept {
    // The process is about to abort: this is the one place where the library writes to stderr.
    char text[512];
    int const size = std::snprintf(text, sizeof text, "kiln: internal error: %s (%s:%d)\n", expression, file, line);
    if (size > 0) {
        [[maybe_unused]] auto const written = ::write(STDERR_FILENO, text, static_cast<std::size_t>(size));
    }
    std::abort();
}

}  // namespace base
}  // namespace kiln
