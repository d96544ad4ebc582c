// SPDX-License-Identifier: Apache-2.0
#include "store/eviction.hpp"

#include "base/directory.hpp"
#include "base/locked_file.hpp"
#include "store/entry_format.hpp"
#include "store/wait_lock.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <tuple>

namespace kiln::store {

namespace {

std::int64_t to_ns(std::chrono::seconds s) noexcept { return std::chrono::nanoseconds{s}.count(); }

bool is_stale(std::filesystem::path const& path, std::int64_t now_ns, std::chrono::seconds stale) {
    struct ::stat about {};
    if (base::sys().lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
    auto const age = now_ns - (std::int64_t{about.st_mtim.tv_sec} * 1'000'000'000 + about.st_mtim.tv_nsec);
    return age > to_ns(stale);
}

// A lock file goes only while we hold its lock: whoever locked it is not robbed, and whoever opened it before the
// unlink sees that the name has another file and starts again.
bool remove_lock_file(std::filesystem::path const& path) {
    auto file = base::open_file(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW);
    if (!file || try_flock(file->get(), LOCK_EX) != lock_attempt::taken) return false;
    base::locked_file const held{*std::move(file)};
    if (!same_file(held.get(), path)) return false;
    return base::sys().unlink(path.c_str()) == 0;
}

std::uint64_t sweep(disk_layout const& layout, std::int64_t now_ns, std::chrono::seconds stale) {
    std::uint64_t swept = 0;
    auto const each = [&](std::filesystem::path const& folder, auto const& remove) {
        std::vector<std::filesystem::path> old;
        (void)base::for_each_name(folder, [&](std::string_view name) {
            if (auto path = folder / name; is_stale(path, now_ns, stale)) old.push_back(std::move(path));
        });
        for (auto const& path : old) swept += remove(path) ? 1 : 0;
    };
    each(layout.temporaries(), [](auto const& path) { return base::sys().unlink(path.c_str()) == 0; });
    each(layout.locks(), remove_lock_file);
    each(layout.v1(), [](std::filesystem::path const& path) {
        bool const ours = path.filename().native().starts_with("stats.tmp-");
        return ours && base::sys().unlink(path.c_str()) == 0;
    });
    return swept;
}

}  // namespace

void sort_by_use(std::vector<stored_file>& files, std::int64_t now_ns) {
    std::sort(files.begin(), files.end(), [now_ns](stored_file const& a, stored_file const& b) {
        return std::tuple{std::min(a.used_ns, now_ns), a.used_ns, std::string_view{a.path.native()}} <
               std::tuple{std::min(b.used_ns, now_ns), b.used_ns, std::string_view{b.path.native()}};
    });
}

removal remove_entry_file(std::filesystem::path const& path) {
    {
        auto const file = base::open_file(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
        std::array<std::byte, entry_prefix_bytes> front{};
        if (file && base::sys().pread(file->get(), front.data(), front.size(), 0) == static_cast<long>(front.size()) &&
            is_newer_format(front)) {
            return removal::kept;
        }
    }
    if (base::sys().unlink(path.c_str()) == 0) return removal::removed;
    return errno == ENOENT ? removal::gone : removal::kept;
}

bool sweep_is_due(disk_layout const& layout, std::chrono::seconds stale) {
    struct ::stat about {};
    // Nobody has counted here yet: the first put finds no account and does, with a sweep. Counting twice at once would
    // lose what the other has reserved and not yet published.
    if (base::sys().lstat(layout.evict_lock().c_str(), &about) != 0) return false;
    auto const age = std::int64_t{::time(nullptr)} - std::int64_t{about.st_mtim.tv_sec};
    return age > stale.count() || age < -stale.count();
}

result<eviction_report> evict(disk_layout const& layout, usage_account& account, eviction_limits const& limits) {
    KILN_TRY(auto lock, base::open_file(layout.evict_lock(), O_RDWR | O_CREAT | O_NOFOLLOW));
    // Where locks fail, two evictors at once remove a little too much: no harm.
    if (try_flock(lock.get(), LOCK_EX) == lock_attempt::busy)
        return eviction_report{.state = eviction_state::busy, .left = {}};
    base::locked_file const held{std::move(lock)};

    eviction_report out;
    auto const now_ns = filesystem_now_ns(layout);
    auto const before = account.read();
    if (before && limits.need == eviction_limits::when::account_missing) {
        out.state = eviction_state::unneeded;  // another rebuilt it while we waited for the lock
        return out;
    }
    out.swept = sweep(layout, now_ns, limits.stale);
    KILN_TRY(auto seen, scan_entries(layout));
    out.left = seen.total;
    if (seen.total.bytes + limits.incoming > limits.max_bytes) {
        sort_by_use(seen.files, now_ns);
        for (auto const& file : seen.files) {
            if (out.left.bytes + limits.incoming <= limits.low_bytes) break;
            auto const what = remove_entry_file(file.path);
            if (what == removal::kept) continue;
            if (what == removal::removed) {
                out.evicted += 1;
                out.evicted_bytes += file.bytes;
            }
            out.left.bytes -= file.bytes;
            out.left.entries -= 1;
        }
    }
    out.left.bytes += limits.incoming;
    if (limits.incoming != 0) out.left.entries += 1;
    account.set(out.left, before);
    return out;
}

}  // namespace kiln::store
