// SPDX-License-Identifier: Apache-2.0
#include "store/read_entry.hpp"

#include "base/files.hpp"
#include "store/entry_format.hpp"

#include <cerrno>
#include <fcntl.h>

namespace kiln::store {

namespace {

using base::sys;

constexpr std::size_t first_read = 4096;

bool others_may_write(struct ::stat const& about, writers allowed) {
    auto const forbidden = allowed == writers::owner ? S_IWGRP | S_IWOTH : S_IWOTH;
    return (about.st_mode & static_cast<mode_t>(forbidden)) != 0;
}

result<read_outcome> read_once(std::filesystem::path const& path, std::uint64_t most_payload, writers allowed) {
    read_outcome out;
    auto const file = base::open_file(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
    if (!file) {
        auto const number = file.error().status();
        if (number == ENOENT || number == ENOTDIR || number == EBUSY) return out;
        bool const closed = number == EACCES || number == EPERM;
        if (!closed && number != ELOOP && number != ENXIO && number != ENODEV) return file.error();
        bool const seen = sys().lstat(path.c_str(), &out.seen) == 0;
        // Where not even its name can be looked at it is the folder that refuses, and that is no fault of the entry.
        if (closed && !seen) return file.error();
        if (!seen) out.seen = {};
        out.why = closed ? miss::unreadable : miss::not_regular;  // else a symbolic link, a socket
        return out;
    }
    if (sys().fstat(file->get(), &out.seen) != 0) return io_error(path.native(), errno);
    if (!S_ISREG(out.seen.st_mode)) {
        out.why = miss::not_regular;
        return out;
    }
    if (others_may_write(out.seen, allowed)) {
        out.why = miss::open_to_others;
        return out;
    }
    auto const most = most_payload + most_header_bytes + 48;
    if (static_cast<std::uint64_t>(out.seen.st_size) > most) {
        out.why = miss::too_large;
        return out;
    }
    auto data = base::read_all(file->get(), most);
    if (!data && data.error().code() == errc::corrupt) {
        out.why = miss::too_large;
        return out;
    }
    if (!data) return data.error();
    auto decoded = decode_entry(*std::move(data), most_payload);
    out.what = std::move(decoded.what);
    out.why = decoded.why;
    if (decoded.header) out.payload = decoded.header->payload;
    return out;
}

}  // namespace

// ESTALE: a server forgot the file between two calls; asked twice, then it is gone.
result<read_outcome> read_entry(std::filesystem::path const& path, std::uint64_t most_payload, writers allowed) {
    for (int attempt = 0;; ++attempt) {
        auto one = read_once(path, most_payload, allowed);
        bool const stale = !one && one.error().status() == ESTALE;
        if (stale && attempt == 0) continue;
        if (stale) return read_outcome{};
        return one;
    }
}

std::optional<labelled_file> read_label(std::filesystem::path const& path, std::uint64_t most_payload) {
    auto const file = base::open_file(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
    struct ::stat about {};
    if (!file || sys().fstat(file->get(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
    base::bytes front;
    for (std::size_t want = first_read;;) {
        front.resize(want);
        auto const count = sys().pread(file->get(), front.data(), front.size(), 0);
        if (count < 0) return std::nullopt;
        front.resize(static_cast<std::size_t>(count));
        auto const need = entry_front_bytes(front);
        if (front.size() >= need || front.size() < want) break;
        want = need;
    }
    auto outcome = decode_header(front, static_cast<std::uint64_t>(about.st_size), most_payload);
    if (!outcome.header) return std::nullopt;
    return labelled_file{
        .what = {.about = std::move(outcome.header->about), .bytes = static_cast<std::uint64_t>(about.st_size)},
        .payload = outcome.header->payload,
        .used_ns = std::int64_t{about.st_mtim.tv_sec} * 1'000'000'000 + about.st_mtim.tv_nsec,
    };
}

}  // namespace kiln::store
