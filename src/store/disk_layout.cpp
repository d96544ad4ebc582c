// SPDX-License-Identifier: Apache-2.0
#include "store/disk_layout.hpp"

#include "base/files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>

namespace kiln::store {

namespace {

constexpr std::size_t short_digits = 16;
constexpr std::size_t full_digits = 64;
constexpr std::string_view suffix = ".kiln";

std::string short_hex(digest const& d) { return d.hex().substr(0, short_digits); }

bool is_hex(std::string_view text) noexcept {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Names in one block of getdents64(2), whose records are a kernel interface: the length is a native u16 at 16, the
// name starts at 19 and ends with a zero.
void names_in(base::byte_span block, std::function<void(std::string_view)> const& callback) {
    constexpr std::size_t length_at = offsetof(struct ::dirent64, d_reclen),
                          name_at = offsetof(struct ::dirent64, d_name);
    while (block.size() > name_at) {
        std::uint16_t length = 0;
        std::memcpy(&length, block.data() + length_at, sizeof length);
        if (length <= name_at || length > block.size()) return;
        auto const text = base::as_text(block.subspan(name_at, length - name_at));
        auto const name = text.substr(0, text.find('\0'));
        if (name != "." && name != "..") callback(name);
        block = block.subspan(length);
    }
}

}  // namespace

std::filesystem::path disk_layout::shard(digest const& family) const { return v1_ / family.hex().substr(0, 2); }
std::filesystem::path disk_layout::entry(address const& at) const { return shard(at.family) / entry_name(at); }
std::filesystem::path disk_layout::lock(digest const& request) const { return locks() / short_hex(request); }

std::string entry_name(address const& at) {
    return fmt::format("{}-{}-{}{}", short_hex(at.family), short_hex(at.request), at.key.hex(), suffix);
}

std::string name_prefix(digest const& family, std::optional<digest> const& request) {
    return request ? fmt::format("{}-{}-", short_hex(family), short_hex(*request))
                   : fmt::format("{}-", short_hex(family));
}

bool is_entry_name(std::string_view name) noexcept {
    return name.size() == short_digits * 2 + full_digits + 2 + suffix.size() && name.ends_with(suffix) &&
           name[short_digits] == '-' && name[short_digits * 2 + 1] == '-' && is_hex(name.substr(0, short_digits)) &&
           is_hex(name.substr(short_digits + 1, short_digits)) &&
           is_hex(name.substr(short_digits * 2 + 2, full_digits));
}

bool is_shard_name(std::string_view name) noexcept { return name.size() == 2 && is_hex(name); }

result<void> for_each_name(std::filesystem::path const& directory,
                           std::function<void(std::string_view)> const& callback) {
    auto fd = base::open_file(directory, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (!fd) {
        auto const why = fd.error().status();
        if (why == ENOENT || why == ENOTDIR || why == ESTALE) return {};
        return std::move(fd).error();
    }
    base::bytes block(32 << 10);
    for (;;) {
        auto const count = base::sys().getdents(fd->get(), block.data(), block.size());
        if (count == 0) return {};
        if (count < 0) {
            if (errno == EINTR) continue;
            if (errno == ESTALE || errno == ENOENT) return {};  // removed while being read
            return io_error(directory.native(), errno);
        }
        names_in(base::byte_span{block}.first(static_cast<std::size_t>(count)), callback);
    }
}

}  // namespace kiln::store
