// SPDX-License-Identifier: Apache-2.0
#include "compile/host_resources.hpp"

#include "base/files.hpp"

#include <algorithm>
#include <charconv>
#include <sched.h>
#include <string>
#include <vector>

namespace kiln::compile {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t memory_per_worker = std::uint64_t{400} << 20;
constexpr std::uint64_t least_precompiled = std::uint64_t{32} << 20;
constexpr std::size_t most_text = std::size_t{1} << 20;

std::string read_text(fs::path const& path) {
    auto data = base::read_file(path, most_text);
    if (!data || !*data) return {};
    return std::string{base::as_text(**data)};
}

std::optional<std::uint64_t> number_in(std::string_view text) {
    auto const from = text.find_first_not_of(" \t");
    if (from == text.npos) return std::nullopt;
    std::uint64_t value = 0;
    auto const [end, why] = std::from_chars(text.data() + from, text.data() + text.size(), value);
    if (why != std::errc{}) return std::nullopt;
    return value;
}

// The number after `label` at the start of a line.
std::optional<std::uint64_t> field(std::string_view text, std::string_view label) {
    while (!text.empty()) {
        auto const line = text.substr(0, text.find('\n'));
        if (line.starts_with(label)) return number_in(line.substr(label.size()));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
    }
    return std::nullopt;
}

// This process's groups of one controller ("" = the unified hierarchy), innermost first. Inside a container the mount
// may show the group itself as its root, so the root is always among them.
std::vector<fs::path> groups(fs::path const& root, std::string_view controller) {
    auto const text = read_text(root / "proc/self/cgroup");
    std::vector<fs::path> out;
    for (std::string_view rest = text; !rest.empty();) {
        auto const line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        auto const first = line.find(':');
        auto const second = line.find(':', first + 1);
        if (second == line.npos) continue;
        auto const names = line.substr(first + 1, second - first - 1);
        bool const matches =
            controller.empty()
                ? names.empty()
                : ("," + std::string{names} + ",").find("," + std::string{controller} + ",") != std::string::npos;
        if (!matches) continue;
        auto const mount = root / "sys/fs/cgroup" / std::string{names};
        for (fs::path group = line.substr(second + 1); group.has_relative_path(); group = group.parent_path()) {
            out.push_back(mount / group.relative_path());
        }
        out.push_back(mount);
    }
    return out;
}

int cores_by_affinity() {
    // Machines with more than 1024 processors need a larger set than cpu_set_t.
    for (int count = 1024; count <= 1 << 20; count *= 2) {
        cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(count));
        if (set == nullptr) break;
        auto const size = CPU_ALLOC_SIZE(static_cast<std::size_t>(count));
        int const status = ::sched_getaffinity(0, size, set);
        int const cores = status == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (cores > 0) return cores;
    }
    return 1;
}

int cores_by_quota(fs::path const& root, int most) {
    std::uint64_t cores = static_cast<std::uint64_t>(most);
    auto limit = [&](std::optional<std::uint64_t> quota, std::optional<std::uint64_t> period) {
        if (quota && period && *quota > 0 && *period > 0) cores = std::min(cores, (*quota + *period - 1) / *period);
    };
    for (auto const& group : groups(root, "")) {
        auto const text = read_text(group / "cpu.max");  // "200000 100000" or "max 100000"
        auto const blank = text.find(' ');
        if (blank != text.npos) limit(number_in(text), number_in(std::string_view{text}.substr(blank)));
    }
    for (auto const& group : groups(root, "cpu")) {
        limit(number_in(read_text(group / "cpu.cfs_quota_us")), number_in(read_text(group / "cpu.cfs_period_us")));
    }
    return static_cast<int>(std::max<std::uint64_t>(1, cores));
}

std::uint64_t memory_by_group(fs::path const& root, std::uint64_t most) {
    auto limit = [&](std::optional<std::uint64_t> bound, std::optional<std::uint64_t> used) {
        if (bound && used) most = std::min(most, *bound > *used ? *bound - *used : 1);
    };
    for (auto const& group : groups(root, "")) {
        limit(number_in(read_text(group / "memory.max")), number_in(read_text(group / "memory.current")));
    }
    for (auto const& group : groups(root, "memory")) {
        limit(number_in(read_text(group / "memory.limit_in_bytes")),
              number_in(read_text(group / "memory.usage_in_bytes")));
    }
    return most;
}

}  // namespace

host_resources host_resources::read(fs::path const& root) {
    host_resources out;
    out.cores = cores_by_quota(root, cores_by_affinity());
    if (auto const available = field(read_text(root / "proc/meminfo"), "MemAvailable:")) {
        out.free_memory = memory_by_group(root, *available * 1024);
    }
    return out;
}

int fitting_workers(host_resources const& host) noexcept {
    if (host.free_memory == 0) return std::max(1, host.cores);
    auto const fit =
        std::min<std::uint64_t>(host.free_memory / memory_per_worker, static_cast<std::uint64_t>(host.cores));
    return std::max(1, static_cast<int>(fit));
}

std::uint64_t fitting_precompiled(host_resources const& host, int workers, precompiled_wish const& wish) noexcept {
    if (workers <= 0) return 0;
    auto out = wish.bytes;
    if (wish.worker_memory > 0) out = std::min(out, wish.worker_memory / 8);
    if (host.free_memory > 0) {
        auto const share = host.free_memory / static_cast<std::uint64_t>(workers);
        out = std::min(out, share > memory_per_worker ? (share - memory_per_worker) / 2 : 0);
    }
    return out < least_precompiled ? 0 : out;
}

std::optional<std::uint64_t> oom_kills(fs::path const& root) {
    return field(read_text(root / "proc/vmstat"), "oom_kill ");
}

}  // namespace kiln::compile
