// SPDX-License-Identifier: Apache-2.0
#include "base/quick_replace.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln::base {

namespace {

constexpr unsigned exchange = 1U << 1;  // RENAME_EXCHANGE, which older libraries do not name

// The two change places, and what was there before is removed under the other's name. False: there is nothing to change places
// with, or the file system cannot.
bool exchanged(char const* temporary, char const* path) {
    if (&sys() != &real_system_calls()) return false;  // tests have calls of their own
    if (::syscall(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, path, exchange) != 0) return false;
    ::unlink(temporary);
    return true;
}

}  // namespace

result<void> replace_quickly(std::filesystem::path const& path, byte_span data, unsigned mode) {
    auto temporary = path;
    temporary += ".tmp-" + random_name();
    auto const write = [&]() -> result<void> {
        KILN_TRY(auto file, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL, mode));
        KILN_CHECK(write_all(file.get(), data));
        KILN_CHECK(file.close());
        if (exchanged(temporary.c_str(), path.c_str())) return {};
        if (sys().rename(temporary.c_str(), path.c_str()) != 0) return io_error("rename", errno);
        return {};
    };
    if (auto done = write(); !done) {
        sys().unlink(temporary.c_str());
        return std::move(done).error().within(path.native());
    }
    return {};
}

}  // namespace kiln::base
