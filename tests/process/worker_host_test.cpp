// SPDX-License-Identifier: Apache-2.0
// The pool and the program it lives in: no worker to be had, the program's death, its exit, its forks, its signals.
#include "base/clock.hpp"
#include "compile/worker_protocol.hpp"
#include "pool_fixture.hpp"

#include <kiln/version.hpp>

#include <gmock/gmock.h>

#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <grp.h>
#include <sched.h>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::compile::testing {

using ::testing::HasSubstr;

// ---- no worker -----------------------------------------------------------------------------------------------------

outcome echo_here(job const& j) { return product{.unit = j.name(), .target = std::get<compile_job>(j.task).target}; }

class fallback_test : public worker_pool_test {
protected:
    // Opens a pool on this program, runs three jobs and returns the detail of the first event.
    std::string run_three(fs::path program, std::chrono::milliseconds start_timeout = 10s) {
        auto o = options(2);
        o.worker = std::move(program);
        o.start_timeout = start_timeout;
        o.in_process = echo_here;
        open(std::move(o));
        std::vector<std::future<outcome>> all;
        for (int i = 0; i < 3; ++i) all.push_back(submit(make_job("unit", "echo")));
        for (auto& one : all) EXPECT_EQ(one.get().value().unit, "unit");
        EXPECT_EQ(pool_->count().in_process, 3u);
        EXPECT_EQ(pool_->count().done, 3u);
        auto const seen = events(event_kind::fell_back);
        EXPECT_EQ(seen.size(), 3u);
        if (seen.empty()) return {};
        EXPECT_EQ(seen[0].reason.view(), "in-process");
        EXPECT_EQ(seen[0].unit.view(), "unit");
        EXPECT_EQ(seen[0].target.view(), "sm_90");
        return std::string{seen[0].detail.view()};
    }
};

TEST_F(fallback_test, a_missing_worker_program) {
    EXPECT_THAT(run_three(scratch("nothing-here")), HasSubstr("not a program that can be run"));
    EXPECT_EQ(pool_->count().started, 0u);
}

TEST_F(fallback_test, a_program_that_cannot_be_executed) {
    std::ofstream{scratch("junk")} << "no program at all";
    fs::permissions(scratch("junk"), fs::perms::owner_all);
    EXPECT_THAT(run_three(scratch("junk")), HasSubstr("Exec format error"));
}

TEST_F(fallback_test, a_worker_that_dies_before_it_says_hello) {
    auto const why = run_three(worker_named("early-exit"));
    EXPECT_THAT(why, HasSubstr("exited with status 127 before it said hello"));
    EXPECT_LE(pool_->count().started, 6u) << "three rounds of two";
}

TEST_F(fallback_test, a_worker_that_never_says_hello) {
    EXPECT_THAT(run_three(worker_named("silent"), 100ms), HasSubstr("said nothing for 100 ms"));
}

TEST_F(fallback_test, a_worker_of_another_build) {
    auto const why = run_three(worker_named("wrong-version"));
    EXPECT_THAT(why, HasSubstr("kiln-worker 9.9.9 speaks worker protocol 99"));
    EXPECT_THAT(why, HasSubstr(fmt::format("speaks {}", worker_protocol_version)));
}

TEST_F(fallback_test, no_workers_by_choice_is_no_fallback) {
    auto o = options(0);
    o.in_process = echo_here;
    open(std::move(o));
    EXPECT_TRUE(submit("echo").get());
    EXPECT_EQ(pool_->count().in_process, 1u);
    EXPECT_EQ(events_.count(event_kind::fell_back), 0u);
    EXPECT_EQ(pool_->capacity(), 0);
}

TEST_F(fallback_test, closing_does_not_wait_for_a_compile_in_this_process) {
    auto gate = std::make_shared<std::promise<void>>();
    auto o = options(0);
    o.in_process = [opened = gate->get_future().share()](job const& j) {
        opened.wait();
        return echo_here(j);
    };
    open(std::move(o));
    auto running = submit("echo");
    ASSERT_TRUE(eventually([&] { return pool_->count().in_process == 1; }));
    pool_.reset();
    EXPECT_EQ(running.get().error().code(), errc::cancelled);
    gate->set_value();
}

TEST(find_worker, names_where_it_looked) {
    auto const named = worker_pool::find_worker("/nowhere/kiln-worker");
    ASSERT_FALSE(named);
    EXPECT_EQ(named.error().code(), errc::not_found);
    EXPECT_THAT(named.error().message(), HasSubstr("/nowhere/kiln-worker"));
    // In the build tree it is beside this program.
    EXPECT_EQ(worker_pool::find_worker({}).value(), KILN_TEST_WORKER);
}

TEST(kiln_worker, started_by_hand_says_what_it_is) {
    auto const run = [](std::string const& arguments) {
        std::string out;
        auto* const pipe = ::popen((KILN_TEST_WORKER " " + arguments + " 2>&1 3>&-").c_str(), "r");
        for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
        return std::pair{out, WEXITSTATUS(::pclose(pipe))};
    };
    EXPECT_EQ(run("--version"), (std::pair{"kiln-worker " + std::string{kiln::version} + "\n", 0}));
    EXPECT_THAT(run("--help").first, HasSubstr("Usage: kiln-worker"));
    EXPECT_THAT(run("").first, HasSubstr("is started by programs that use Kiln"));
    EXPECT_EQ(run("").second, 2);
    EXPECT_EQ(run("--nonsense").second, 2);
}

// ---- the host's death and exit -------------------------------------------------------------------------------------

class host_test : public worker_pool_test {
protected:
    pid_t host_ = -1;
    std::FILE* output_ = nullptr;

    // Runs the helper pool_parent with four held jobs; see there for the endings.
    std::vector<pid_t> start_host(std::string ending) {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        std::string program = KILN_TEST_BIN_DIR "/kiln-test-pool_parent", worker = fault_worker(), source = hold(),
                    count = "4";
        char* arguments[] = {program.data(), worker.data(), count.data(), source.data(), ending.data(), nullptr};
        EXPECT_EQ(::posix_spawn(&host_, program.c_str(), &actions, nullptr, arguments, environ), 0);
        ::posix_spawn_file_actions_destroy(&actions);
        ::close(ends[1]);
        if (output_ != nullptr) std::fclose(output_);
        output_ = ::fdopen(ends[0], "r");
        std::istringstream words{line()};
        std::string word;
        words >> word;
        EXPECT_EQ(word, "pids");
        std::vector<pid_t> pids;
        for (pid_t pid = 0; words >> pid;) pids.push_back(pid);
        return pids;
    }
    std::string line() {
        char buffer[512];
        return std::fgets(buffer, sizeof buffer, output_) != nullptr ? buffer : "";
    }
    void TearDown() override {
        if (output_ != nullptr) std::fclose(output_);
    }
};

TEST_F(host_test, kill_9_of_the_parent_leaves_no_worker_after_a_second) {
    auto const pids = start_host("wait");
    ASSERT_EQ(pids.size(), 4u);
    for (auto const pid : pids) ASSERT_TRUE(is_running(pid));
    send_signal(host_, SIGKILL);
    ASSERT_EQ(::waitpid(host_, nullptr, 0), host_);
    EXPECT_TRUE(eventually([&] { return std::ranges::none_of(pids, is_running); }, 1s * slowness));
}

TEST_F(host_test, workers_outlive_ctrl_c_and_hang_up_in_the_terminal) {
    auto const pids = start_host("wait");
    for (int const signal : {SIGINT, SIGQUIT, SIGHUP}) {
        for (auto const pid : pids) send_signal(pid, signal);
    }
    // A signal that would end a process has done so by the time another one is delivered.
    for (auto const pid : pids) EXPECT_TRUE(is_running(pid));
    send_signal(host_, SIGKILL);
    ::waitpid(host_, nullptr, 0);
    EXPECT_TRUE(eventually([&] { return std::ranges::none_of(pids, is_running); }));
}

class host_exit_test : public host_test, public ::testing::WithParamInterface<char const*> {};

TEST_P(host_exit_test, with_jobs_running_takes_no_time_and_leaves_nobody) {
    // The fastest of three: a busy machine is not what is under test.
    double fastest_ms = 1e9;
    for (int i = 0; i < 3; ++i) {
        auto const pids = start_host(GetParam());
        long long left = 0;
        ASSERT_EQ(std::sscanf(line().c_str(), "leaving %lld", &left), 1);
        int status = -1;
        ASSERT_EQ(::waitpid(host_, &status, 0), host_);
        fastest_ms = std::min(fastest_ms, static_cast<double>(base::now_ns() - left) * 1e-6);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
        EXPECT_TRUE(eventually([&] { return std::ranges::none_of(pids, is_running); }, 1s * slowness));
    }
    EXPECT_LT(fastest_ms, 200.0 * slowness);
}

INSTANTIATE_TEST_SUITE_P(all, host_exit_test, ::testing::Values("exit", "destroy", "static"),
                         [](auto const& one) { return std::string{one.param}; });

// ---- fork and SIGCHLD ----------------------------------------------------------------------------------------------

TEST_F(worker_pool_test, after_fork_the_child_starts_workers_of_its_own) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer does not support threads in the child of a process with threads";
#endif
    open(options(2));
    auto held_job = submit(hold());
    ASSERT_TRUE(eventually([&] { return held().size() == 1; }));
    pid_t const child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        bool right = pool_->workers().empty() && pool_->count().submitted == 0;
        right = right && image_text(submit("echo from the child").get()) == "from the child";
        right = right && pool_->workers().size() == 1 && pool_->workers()[0].pid != held()[0];
        pool_.reset();
        ::_exit(right && is_running(held()[0]) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    release();
    EXPECT_TRUE(held_job.get());
}

TEST_F(worker_pool_test, a_forked_child_may_leave_without_touching_the_pool) {
    open(options(1));
    auto held_job = submit(hold());
    ASSERT_TRUE(eventually([&] { return held().size() == 1; }));
    pid_t const child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        pool_.reset();
        ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(is_running(held()[0]));
    release();
    EXPECT_TRUE(held_job.get());
}

// ---- another world -------------------------------------------------------------------------------------------------

int run_in_child(std::function<bool()> const& holds) {
    pid_t const child = ::fork();
    if (child == 0) ::_exit(holds() ? 0 : 1);
    int status = -1;
    return ::waitpid(child, &status, 0) == child ? status : -1;
}

// Permissions are decided by groups as by users; to change those needs no less, and the worker's program stays readable.
TEST_F(worker_pool_test, workers_of_a_program_that_was_somebody_else_are_not_used) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root changes who it is";
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer does not support threads in the child of a process with threads";
#endif
    open(options(1));
    EXPECT_EQ(0, run_in_child([&] {
                  bool right = submit("echo before").get().has_value();
                  auto const before = pool_->workers().at(0).pid;
                  right = right && submit("echo again").get() && pool_->workers().at(0).pid == before;
                  ::gid_t const other = 54321;
                  right = right && ::setgroups(1, &other) == 0 && submit("echo after").get();
                  right = right && pool_->count().started == 2 && pool_->workers().at(0).pid != before;
                  pool_.reset();
                  return right;
              }));
}

TEST_F(worker_pool_test, a_thread_with_mounts_of_its_own_has_workers_of_its_own) {
    auto const mounts_of = [](std::string const& who) {
        struct ::stat about {};
        return ::stat(fmt::format("/proc/{}/ns/mnt", who).c_str(), &about) == 0 ? about.st_ino : 0;
    };
    open(options(1));
    EXPECT_TRUE(submit("echo before").get());
    auto const before = pool_->workers().at(0).pid;
    bool is_allowed = false;
    pid_t own = 0;
    std::thread{[&] {
        is_allowed = ::unshare(CLONE_NEWNS) == 0;
        if (!is_allowed) return;
        EXPECT_TRUE(submit("echo here").get());
        for (auto const& w : pool_->workers()) own = w.pid != before ? w.pid : own;
        ASSERT_NE(own, 0);
        EXPECT_EQ(mounts_of(std::to_string(own)), mounts_of("thread-self"));
        EXPECT_TRUE(submit("echo here again").get());
    }}.join();
    if (!is_allowed) GTEST_SKIP() << "no mounts of one's own without privileges";
    EXPECT_TRUE(submit("echo after").get());
    EXPECT_EQ(pool_->count().started, 2u);
    EXPECT_EQ(pool_->count().done, 4u);
    EXPECT_EQ(mounts_of(std::to_string(before)), mounts_of("thread-self"));
}

std::atomic<int> child_signals{0};
void on_child(int) { ++child_signals; }

// The host's handling of SIGCHLD for the length of a test.
class sigchld_test : public worker_pool_test {
protected:
    struct sigaction before_ {};
    void handle(void (*handler)(int)) {
        struct sigaction mine {};
        mine.sa_handler = handler;
        mine.sa_flags = SA_RESTART;
        ASSERT_EQ(::sigaction(SIGCHLD, &mine, &before_), 0);
    }
    void TearDown() override {
        pool_.reset();
        ::sigaction(SIGCHLD, &before_, nullptr);
    }
};

TEST_F(sigchld_test, the_hosts_handler_and_its_children_are_left_alone) {
    handle(on_child);
    std::string program = "/bin/true";
    char* arguments[] = {program.data(), nullptr};
    pid_t own = -1;
    ASSERT_EQ(::posix_spawn(&own, program.c_str(), nullptr, nullptr, arguments, environ), 0);
    ASSERT_TRUE(eventually([&] { return !is_running(own); }));
    open(options(2));
    EXPECT_TRUE(submit("echo").get());
    EXPECT_FALSE(submit("signal 11").get());
    pool_.reset();
    struct sigaction now {};
    ASSERT_EQ(::sigaction(SIGCHLD, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, &on_child);
    int status = -1;
    EXPECT_EQ(::waitpid(own, &status, 0), own) << "the pool has reaped somebody else's child";
    EXPECT_EQ(status, 0);
    siginfo_t about{};
    EXPECT_TRUE(eventually([&] { return ::waitid(P_ALL, 0, &about, WEXITED | WNOHANG | WNOWAIT) < 0; }))
        << "a worker was left unreaped";
}

TEST_F(sigchld_test, a_host_that_ignores_its_children) {
    handle(SIG_IGN);
    auto o = options(2);
    o.idle_timeout = 20ms;
    open(std::move(o));
    EXPECT_TRUE(submit("echo").get());
    EXPECT_TRUE(submit("once " + scratch("crashed").native()).get());
    ASSERT_TRUE(eventually([&] { return pool_->workers().empty(); }));
    EXPECT_TRUE(submit("echo").get());
}

TEST_F(sigchld_test, a_host_that_reaps_every_child_there_is) {
    handle([](int) {
        int const saved = errno;
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        errno = saved;
    });
    open(options(2));
    EXPECT_TRUE(submit("once " + scratch("crashed").native()).get());
    EXPECT_EQ(submit("signal 11").get().error().code(), errc::worker_failed);
    EXPECT_TRUE(submit("echo").get());
}

}  // namespace kiln::compile::testing
