// SPDX-License-Identifier: Apache-2.0
#include "store/usage.hpp"

#include "base/directory.hpp"
#include "store/wait_lock.hpp"

#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>

namespace kiln::store {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t usage_magic = 0x31455355'4E4C494BULL;  // "KILNUSE1"
constexpr std::size_t record_bytes = 32;

std::uint64_t check_of(base::byte_span fields) { return base::sha256_of(fields).prefix(); }

std::optional<usage> decode(base::byte_span data) {
    base::byte_reader r{data};
    auto const start = r.get_u64();
    usage const out{.bytes = r.get_u64(), .entries = r.get_u64()};
    auto const check = r.get_u64();
    if (!r.done() || start != usage_magic || check != check_of(data.first(record_bytes - 8))) return std::nullopt;
    return out;
}

std::optional<usage> read_record(int fd) {
    base::bytes data(record_bytes);
    auto const count = base::sys().pread(fd, data.data(), data.size(), 0);
    if (count != static_cast<long>(record_bytes)) return std::nullopt;
    return decode(data);
}

bool write_record(int fd, usage const& now) {
    base::byte_writer w;
    w.put_u64(usage_magic);
    w.put_u64(now.bytes);
    w.put_u64(now.entries);
    w.put_u64(check_of(w.view()));
    return base::sys().pwrite(fd, w.view().data(), w.size(), 0) == static_cast<long>(w.size());
}

// A sum that would fall below zero was wrong before: zero is as good as any until the next count.
std::uint64_t moved(std::uint64_t value, std::int64_t by) noexcept {
    if (by >= 0) return value + static_cast<std::uint64_t>(by);
    auto const down = static_cast<std::uint64_t>(-by);
    return value > down ? value - down : 0;
}

std::int64_t to_ns(struct ::timespec const& t) noexcept { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

}  // namespace

// In place, under a lock on the file itself: 32 bytes are one write, and a torn one fails its check.
base::locked_file usage_account::lock(std::chrono::milliseconds patience) {
    auto file = base::open_file(layout_.usage(), O_RDWR | O_CREAT | O_NOFOLLOW);
    if (!file) return {};
    // Where locks do not work at all the sum is only an estimate; a busy lock means: do not know.
    if (wait_flock(file->get(), LOCK_EX, base::clock::now() + patience) == lock_attempt::busy) return {};
    return base::locked_file{*std::move(file)};
}

std::optional<usage> usage_account::add(std::int64_t bytes, std::int64_t entries, std::chrono::milliseconds patience) {
    auto const file = lock(patience);
    if (!file) return std::nullopt;
    auto now = read_record(file.get());
    if (!now) return std::nullopt;
    now->bytes = moved(now->bytes, bytes);
    now->entries = moved(now->entries, entries);
    if (!write_record(file.get(), *now)) return std::nullopt;
    return now;
}

std::optional<usage> usage_account::read() {
    auto const file = base::open_file(layout_.usage(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    if (!file) return std::nullopt;
    return read_record(file->get());
}

void usage_account::set(usage counted, std::optional<usage> before) {
    auto const file = lock(500ms);
    if (!file) return;
    if (auto const now = read_record(file.get()); now && before) {
        if (now->bytes > before->bytes) counted.bytes += now->bytes - before->bytes;
        if (now->entries > before->entries) counted.entries += now->entries - before->entries;
    }
    (void)write_record(file.get(), counted);
}

result<scan_result> scan_entries(disk_layout const& layout) {
    std::vector<std::filesystem::path> shards;
    KILN_CHECK(base::for_each_name(layout.v1(), [&](std::string_view name) {
        if (is_shard_name(name)) shards.push_back(layout.v1() / name);
    }));
    scan_result out;
    for (auto const& shard : shards) {
        auto const looked = base::for_each_name(shard, [&](std::string_view name) {
            if (!is_entry_name(name)) return;
            auto path = shard / name;
            struct ::stat about {};
            if (base::sys().lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return;
            auto const bytes = static_cast<std::uint64_t>(about.st_size);
            out.files.push_back({.path = std::move(path), .bytes = bytes, .used_ns = to_ns(about.st_mtim)});
            out.total.bytes += bytes;
            out.total.entries += 1;
        });
        // A folder that is closed to us is passed over here as it is by lookups.
        if (!looked && looked.error().status() != EACCES) return looked.error();
    }
    return out;
}

std::int64_t filesystem_now_ns(disk_layout const& layout) {
    struct ::timespec ours {};
    ::clock_gettime(CLOCK_REALTIME, &ours);
    auto const file = layout.evict_lock();
    struct ::stat about {};
    if (base::sys().utimensat(AT_FDCWD, file.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0 ||
        base::sys().lstat(file.c_str(), &about) != 0) {
        return to_ns(ours);
    }
    return to_ns(about.st_mtim);
}

}  // namespace kiln::store
