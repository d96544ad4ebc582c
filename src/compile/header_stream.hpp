// SPDX-License-Identifier: Apache-2.0
// Header text as the stream that a compiler's `fopen` gets.
#pragma once

#include "base/files.hpp"
#include "base/standard_streams.hpp"

#include <cerrno>
#include <cstdio>
#include <stdio_ext.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::compile {

// Reads these bytes and, unlike fmemopen's, passes for a regular file: NVRTC asks fstat.
[[nodiscard]] inline result<std::FILE*> stream_over(base::byte_span text) {
    base::file_descriptor fd{base::memory_file("kiln-header", MFD_CLOEXEC)};
    if (!fd) return io_error("memfd_create", errno);
    KILN_CHECK(base::write_all(fd.get(), text));
    if (::lseek(fd.get(), 0, SEEK_SET) != 0) return io_error("lseek", errno);
    auto* const stream = ::fdopen(fd.get(), "r");
    if (stream == nullptr) return io_error("fdopen", errno);
    fd.release();
    // The compiler reads letter by letter, on one thread: a lock for each would be a twentieth of the compile.
    ::__fsetlocking(stream, FSETLOCKING_BYCALLER);
    return stream;
}

}  // namespace kiln::compile
