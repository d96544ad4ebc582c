// SPDX-License-Identifier: Apache-2.0
#include "base/directory.hpp"

#include "base/files.hpp"

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>

namespace kiln::base {

namespace {

// Names in one block of getdents64(2), whose records are a kernel interface: the length is a native u16 at 16, the
// name starts at 19 and ends with a zero.
void names_in(byte_span block, std::function<void(std::string_view)> const& callback) {
    constexpr std::size_t length_at = offsetof(struct ::dirent64, d_reclen),
                          name_at = offsetof(struct ::dirent64, d_name);
    while (block.size() > name_at) {
        std::uint16_t length = 0;
        std::memcpy(&length, block.data() + length_at, sizeof length);
        if (length <= name_at || length > block.size()) return;
        auto const text = as_text(block.subspan(name_at, length - name_at));
        auto const name = text.substr(0, text.find('\0'));
        if (name != "." && name != "..") callback(name);
        block = block.subspan(length);
    }
}

}  // namespace

result<void> for_each_name(std::filesystem::path const& directory,
                           std::function<void(std::string_view)> const& callback) {
    auto fd = open_file(directory, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (!fd) {
        auto const why = fd.error().status();
        if (why == ENOENT || why == ENOTDIR || why == ESTALE) return {};
        return std::move(fd).error();
    }
    bytes block(32 << 10);
    for (;;) {
        auto const count = sys().getdents(fd->get(), block.data(), block.size());
        if (count == 0) return {};
        if (count < 0) {
            if (errno == EINTR) continue;
            if (errno == ESTALE || errno == ENOENT) return {};  // removed while being read
            return io_error(directory.native(), errno);
        }
        names_in(byte_span{block}.first(static_cast<std::size_t>(count)), callback);
    }
}

}  // namespace kiln::base
