// SPDX-License-Identifier: Apache-2.0
#include "compile/host_resources.hpp"

#include "base/files.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sched.h>

namespace kiln::compile {
namespace {

namespace fs = std::filesystem;

// A machine made of files.
class host_resources_test : public ::testing::Test {
protected:
    base::temporary_directory root_ = base::temporary_directory::make("kiln-host").value();
    int cores_ = 0;

    void SetUp() override {
        cpu_set_t set;
        ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
        cores_ = CPU_COUNT(&set);
        put("proc/meminfo", "MemTotal:       16000000 kB\nMemFree:          10 kB\nMemAvailable:    8192000 kB\n");
    }
    void put(fs::path const& name, std::string_view text) const {
        fs::create_directories((root_.path() / name).parent_path());
        std::ofstream{root_.path() / name} << text;
    }
    [[nodiscard]] host_resources read() const { return host_resources::read(root_.path()); }
};

TEST_F(host_resources_test, without_groups_affinity_and_available_memory_decide) {
    EXPECT_EQ(read().cores, cores_);
    EXPECT_EQ(read().free_memory, std::uint64_t{8192000} * 1024);
}

TEST_F(host_resources_test, a_quota_in_any_enclosing_group_counts) {
    put("proc/self/cgroup", "0::/a/b/c\n");
    put("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/a/cpu.max", "90000 100000\n");
    EXPECT_EQ(read().cores, 1);
    put("sys/fs/cgroup/a/cpu.max", "1600000000 100000\n");
    EXPECT_EQ(read().cores, cores_);
}

TEST_F(host_resources_test, a_quota_of_version_1_counts) {
    put("proc/self/cgroup", "5:cpu,cpuacct:/box\n4:memory:/box\n");
    put("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "50000\n");
    put("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1000000\n");
    put("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "400000\n");
    EXPECT_EQ(read().cores, 1);
    EXPECT_EQ(read().free_memory, 600000u);
    put("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
    EXPECT_EQ(read().cores, cores_);
}

TEST_F(host_resources_test, the_groups_memory_counts_where_it_is_less) {
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/memory.max", "1000000\n");
    put("sys/fs/cgroup/memory.current", "250000\n");
    EXPECT_EQ(read().free_memory, 750000u);
    put("sys/fs/cgroup/memory.current", "1000001\n");
    EXPECT_EQ(fitting_workers(read()), 1);
    put("sys/fs/cgroup/memory.max", "max\n");
    EXPECT_EQ(read().free_memory, std::uint64_t{8192000} * 1024);
}

TEST_F(host_resources_test, garbage_and_absence_are_no_limit) {
    fs::remove(root_.path() / "proc/meminfo");
    put("proc/self/cgroup", "nonsense\n:::\n0::/\n");
    put("sys/fs/cgroup/cpu.max", "banana\n");
    EXPECT_EQ(read().cores, cores_);
    EXPECT_EQ(read().free_memory, 0u);
}

TEST(fitting_workers, cores_and_memory_and_at_least_one) {
    auto const gib = std::uint64_t{1} << 30;
    EXPECT_EQ(fitting_workers({16, 128 * gib}), 16);
    EXPECT_EQ(fitting_workers({16, 4 * gib}), 10);
    EXPECT_EQ(fitting_workers({16, gib / 10}), 1);
    EXPECT_EQ(fitting_workers({16, 0}), 16);
}

TEST_F(host_resources_test, kills_for_want_of_memory_are_counted_where_the_kernel_tells) {
    EXPECT_FALSE(oom_kills(root_.path()));
    put("proc/vmstat", "pgfault 12\noom_kill 3\n");
    EXPECT_EQ(oom_kills(root_.path()), 3u);
}

TEST_F(host_resources_test, precompiled_headers_have_half_of_what_compiles_leave) {
    constexpr std::uint64_t MiB = 1 << 20;
    precompiled_wish const wish{512 * MiB, 4096 * MiB};
    auto with = [&](std::uint64_t free, int workers) {
        return fitting_precompiled({2, free * MiB}, workers, wish) / MiB;
    };
    EXPECT_EQ(with(8192, 2), 512u);
    EXPECT_EQ(with(2000, 2), 300u);
    EXPECT_EQ(with(2000, 5), 0u);
    EXPECT_EQ(with(900, 2), 0u) << "too little to be of use";
    EXPECT_EQ(with(0, 2), 512u) << "not known";
    EXPECT_EQ(with(8192, 0), 0u);
    EXPECT_EQ(fitting_precompiled({2, 8192 * MiB}, 1, {512 * MiB, 1024 * MiB}), 128 * MiB);
    EXPECT_EQ(fitting_precompiled({2, 8192 * MiB}, 1, {512 * MiB, 0}), 512 * MiB);
    EXPECT_EQ(fitting_precompiled({2, 8192 * MiB}, 1, {0, 0}), 0u);
}

}  // namespace
}  // namespace kiln::compile
