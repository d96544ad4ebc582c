// SPDX-License-Identifier: Apache-2.0
#include "store/maintenance.hpp"

#include "store/entry_format.hpp"
#include "store/eviction.hpp"
#include "store/read_entry.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace kiln::store {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

std::int64_t now_ns() noexcept {
    struct ::timespec now {};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return std::int64_t{now.tv_sec} * second_ns + now.tv_nsec;
}

// A path and the address inside must agree: a valid entry under another's name is a bad one.
bool is_at_home(std::filesystem::path const& path, address const& at) {
    return path.filename() == entry_name(at) && path.parent_path().filename() == at.family.hex().substr(0, 2);
}

}  // namespace

maintenance::maintenance(std::filesystem::path root) : layout_{std::move(root)}, account_{layout_} {}

// The same rules as for using it: removing files through a directory that others control is no better.
result<void> maintenance::trusted() {
    disk_directory directory{layout_.root(), {}, std::make_shared<event_outlet>(nullptr)};
    auto const report = directory.report();
    if (report.state == directory_state::off) return fail(errc::forbidden, "{}", report.reason);
    return {};
}

result<scan_result> maintenance::scan() {
    KILN_CHECK(trusted());
    return scan_entries(layout_);
}

result<usage> maintenance::count() {
    KILN_TRY(auto const seen, scan());
    return seen.total;
}

result<std::vector<cached>> maintenance::list() {
    KILN_TRY(auto seen, scan());
    auto const now = now_ns();
    sort_by_use(seen.files, now);
    std::vector<cached> out;
    for (auto file = seen.files.rbegin(); file != seen.files.rend(); ++file) {
        auto about = read_label(file->path, most_payload_bytes);
        if (!about || !is_at_home(file->path, about->what.about.at)) continue;
        auto const age = std::max<std::int64_t>(0, now - file->used_ns) / second_ns;
        out.push_back({.what = std::move(about->what), .path = file->path, .unused_for = std::chrono::seconds{age}});
    }
    return out;
}

result<prune_report> maintenance::prune(prune_options const& options) {
    KILN_TRY(auto seen, scan());
    auto const before = account_.read();
    auto const now = now_ns();
    sort_by_use(seen.files, now);
    prune_report out;
    out.left = seen.total;
    for (auto const& file : seen.files) {
        auto const age = std::chrono::seconds{std::max<std::int64_t>(0, now - file.used_ns) / second_ns};
        bool const old = options.older_than && age > *options.older_than;
        bool const over = options.to_bytes && out.left.bytes > *options.to_bytes;
        if (!old && !over) continue;
        auto const what = options.mode == prune_options::run::dry ? removal::removed : remove_entry_file(file.path);
        if (what == removal::kept) continue;
        if (what == removal::removed) {
            out.removed += 1;
            out.removed_bytes += file.bytes;
        }
        out.left.bytes -= file.bytes;
        out.left.entries -= 1;
    }
    if (options.mode == prune_options::run::real && before) account_.set(out.left, before);
    return out;
}

result<prune_report> maintenance::clear() { return prune({.older_than = {}, .to_bytes = 0}); }

result<verify_report> maintenance::verify(bad_entries what) {
    KILN_TRY(auto const seen, scan());
    verify_report out;
    for (auto const& file : seen.files) {
        // One that cannot be read is one bad entry: the others are checked all the same.
        auto const answer = read_entry(file.path, most_payload_bytes, writers::owner);
        auto const read = answer ? *answer : read_outcome{.what = {}, .payload = {}, .why = miss::unreadable};
        if (!read.what && read.why == miss::absent) continue;  // evicted meanwhile
        if (read.why == miss::newer_format) {
            out.newer += 1;
            continue;
        }
        out.checked += 1;
        out.checked_bytes += file.bytes;
        if (read.what && is_at_home(file.path, read.what->about.at)) continue;
        out.bad.push_back({.path = file.path, .why = read.what ? miss::wrong_key : read.why});
        if (what == bad_entries::remove && remove_entry_file(file.path) == removal::removed) {
            (void)account_.add(-static_cast<std::int64_t>(file.bytes), -1);
        }
    }
    return out;
}

result<statistics> maintenance::counters() { return read_statistics(layout_.statistics()); }

result<void> maintenance::zero_counters() {
    KILN_CHECK(trusted());
    if (base::sys().unlink(layout_.statistics().c_str()) == 0 || errno == ENOENT) return {};
    return io_error(layout_.statistics().native(), errno);
}

}  // namespace kiln::store
