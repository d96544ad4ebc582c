// SPDX-License-Identifier: Apache-2.0
// The pool when nothing goes wrong: order, withdrawal, numbers of workers, their lives and surroundings.
#include "pool_fixture.hpp"

#include "base/clock.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <mutex>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace kiln::compile::testing {

int own_nice() { return ::getpriority(PRIO_PROCESS, 0); }

TEST_F(worker_pool_test, a_job_comes_back_as_its_product) {
    open(options(1));
    auto const made = submit(make_job("one", "echo hello there")).get();
    EXPECT_EQ(image_text(made), "hello there");
    EXPECT_EQ(made->unit, "one");
    EXPECT_EQ(pool_->count().done, 1u);
    EXPECT_EQ(pool_->count().in_process, 0u);
}

TEST_F(worker_pool_test, an_error_comes_back_with_its_log_and_is_not_tried_again) {
    open(options(1));
    auto const refused = submit("refuse there is a brace missing").get();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::compile_failed);
    EXPECT_EQ(refused.error().message(), "there is a brace missing");
    EXPECT_EQ(refused.error().log(), "the log");
    EXPECT_EQ(submit("throw some words").get().error().code(), errc::internal);
    EXPECT_EQ(pool_->count().retried, 0u);
    EXPECT_EQ(pool_->count().started, 1u);
}

// It is kept in the host's memory while the job runs: a compiler that shouts must not fill it.
TEST_F(worker_pool_test, what_a_worker_writes_is_kept_up_to_a_bound) {
    open(options(1));
    auto const taken = std::stoull(image_text(submit("shout 64").get()));
    EXPECT_GT(taken, 0u);
    EXPECT_LE(taken, std::uint64_t{1} << 20);
    EXPECT_EQ(image_text(submit("echo goes on").get()), "goes on");
}

// A program may have closed its standard streams, and go on writing to them.
TEST_F(worker_pool_test, a_worker_hears_nothing_of_what_is_written_to_streams_that_are_closed) {
    auto const work = [&] {
        for (int const stream : {0, 1, 2}) ::close(stream);
        open(options(1));
        for (auto const* const job : {"echo one", "echo two", "echo three"}) {
            if (image_text(submit(job).get()) != std::string{job}.substr(5)) ::_exit(1);
            for (int const stream : {0, 1, 2}) {
                if (::write(stream, "said to nobody\n", 15) >= 0) ::_exit(3);
            }
        }
        auto const seen = pool_->count();
        pool_.reset();
        ::_exit(seen.started == 1 && seen.done == 3 ? 0 : 2);
    };
    EXPECT_EXIT(work(), ::testing::ExitedWithCode(0), "");
}

TEST_F(worker_pool_test, nothing_is_started_before_the_first_submit) {
    open(options(4));
    EXPECT_EQ(pool_->count().started, 0u);
    EXPECT_TRUE(pool_->workers().empty());
    EXPECT_EQ(pool_->capacity(), 4);
}

class ordered_test : public worker_pool_test {
protected:
    std::mutex mutex_;
    std::vector<std::string> order_;
    std::vector<std::future<void>> all_;

    // The only worker is busy before anything else is queued.
    void SetUp() override {
        open(options(1));
        add("first", hold(), priority::predicted);
        ASSERT_TRUE(eventually([&] { return held().size() == 1; }));
    }
    worker_pool::ticket add(std::string const& name, std::string source, priority how) {
        auto promise = std::make_shared<std::promise<void>>();
        all_.push_back(promise->get_future());
        return pool_->submit(make_job(name, std::move(source)), how, [this, name, promise](outcome const& o) {
            std::unique_lock lock{mutex_};
            order_.push_back(o ? name : name + " " + std::string{name_of(o.error().code())});
            lock.unlock();
            promise->set_value();
        });
    }
    std::vector<std::string> finish() {
        release();
        for (auto& one : all_) one.get();
        std::lock_guard const lock{mutex_};
        return order_;
    }
};

TEST_F(ordered_test, urgent_jobs_run_first_and_equals_in_order_of_submission) {
    add("predicted", "echo", priority::predicted);
    add("declared 1", "echo", priority::declared);
    add("blocking 1", "echo", priority::blocking);
    add("declared 2", "echo", priority::declared);
    add("planned", "echo", priority::planned);
    add("blocking 2", "echo", priority::blocking);
    EXPECT_EQ(pool_->count().queued, 6u);
    EXPECT_THAT(finish(), ::testing::ElementsAre("first", "blocking 1", "blocking 2", "planned", "declared 1",
                                                 "declared 2", "predicted"));
}

TEST_F(ordered_test, raising_moves_a_job_up_and_never_down) {
    auto const late = add("late", "echo", priority::predicted);
    auto const urgent = add("urgent", "echo", priority::blocking);
    add("planned", "echo", priority::planned);
    pool_->raise(late, priority::blocking);
    pool_->raise(urgent, priority::predicted);
    pool_->raise(12345, priority::blocking);
    EXPECT_THAT(finish(), ::testing::ElementsAre("first", "late", "urgent", "planned"));
}

TEST_F(ordered_test, a_queued_job_can_be_withdrawn_and_a_running_one_not) {
    auto const doomed = add("doomed", "echo", priority::blocking);
    add("kept", "echo", priority::blocking);
    EXPECT_TRUE(pool_->cancel(doomed));
    EXPECT_FALSE(pool_->cancel(doomed));
    EXPECT_FALSE(pool_->cancel(1));
    EXPECT_THAT(finish(), ::testing::ElementsAre("doomed cancelled", "first", "kept"));
}

TEST_F(worker_pool_test, as_many_workers_as_jobs_start_at_once_up_to_the_capacity) {
    open(options(6));
    std::vector<std::future<outcome>> all;
    for (int i = 0; i < 9; ++i) all.push_back(submit(hold()));
    ASSERT_TRUE(eventually([&] { return held().size() == 6; }));
    EXPECT_EQ(pool_->workers().size(), 6u);
    EXPECT_EQ(pool_->count().queued, 3u);
    for (auto const& w : pool_->workers()) {
        EXPECT_TRUE(w.busy);
        EXPECT_EQ(w.unit, "unit");
        EXPECT_GT(w.busy_ns, 0);
    }
    release();
    for (auto& one : all) EXPECT_TRUE(one.get());
    EXPECT_EQ(pool_->count().started, 6u);
}

TEST_F(worker_pool_test, jobs_one_after_the_other_use_one_worker) {
    open(options(4));
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(submit("echo").get());
    EXPECT_EQ(pool_->count().started, 1u);
}

TEST_F(worker_pool_test, idle_workers_are_retired_and_started_again_when_needed) {
    auto o = options(2);
    o.idle_timeout = 20ms;
    open(std::move(o));
    EXPECT_TRUE(submit("echo").get());
    ASSERT_TRUE(eventually([&] { return events_.count(event_kind::worker_ended) == 1; }));
    EXPECT_EQ(events(event_kind::worker_ended).front().reason.view(), "retired");
    EXPECT_EQ(events(event_kind::worker_ended).front().value, events(event_kind::worker_started).front().value);
    EXPECT_TRUE(eventually([&] { return pool_->workers().empty(); }));
    EXPECT_TRUE(submit("echo").get());
    EXPECT_EQ(pool_->count().started, 2u);
    EXPECT_EQ(pool_->count().died, 0u);
}

TEST_F(worker_pool_test, a_thousand_submits_from_fifty_threads) {
    open(options(4));
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 50; ++t) {
        threads.emplace_back([&, t] {
            std::vector<std::future<outcome>> mine;
            for (int i = 0; i < 20; ++i) mine.push_back(submit(fmt::format("echo {}", t * 20 + i)));
            for (int i = 0; i < 20; ++i)
                right += image_text(mine[static_cast<std::size_t>(i)].get()) == std::to_string(t * 20 + i) ? 1 : 0;
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(right, 1000);
    EXPECT_EQ(pool_->count().submitted, 1000u);
    EXPECT_EQ(pool_->count().done, 1000u);
    EXPECT_LE(pool_->count().started, 4u);
}

TEST_F(worker_pool_test, large_jobs_and_products_pass_through) {
    open(options(2));
    std::string const text(20'000'000, 'x');
    auto a = submit("echo " + text), b = submit("echo " + text);
    EXPECT_EQ(image_text(a.get()), text);
    EXPECT_EQ(image_text(b.get()), text);
}

TEST_F(worker_pool_test, a_worker_has_nothing_of_the_host_but_its_socket) {
    base::file_descriptor const leaked{::open("/dev/null", O_RDONLY)};  // no O_CLOEXEC, as careless hosts do
    ASSERT_TRUE(leaked);
    open(options(1));
    auto const text = image_text(submit("surroundings").get());
    EXPECT_EQ(text, fmt::format("cwd=/ nice={} sigint=ignored core=0 data=bound umask=77 fds=0,1,2,3", own_nice()));
}

TEST_F(worker_pool_test, what_somebody_waits_for_is_not_made_to_step_back) {
    open(options(2));
    auto const nice = [&](priority how) {
        auto const text = image_text(submit(make_job("unit", "surroundings"), how).get());
        return text.substr(0, text.find(" sigint"));
    };
    auto const plain = fmt::format("cwd=/ nice={}", own_nice());
    auto const back = fmt::format("cwd=/ nice={}", std::max(15, own_nice()));
    EXPECT_EQ(nice(priority::blocking), plain);
    for (auto const how : {priority::predicted, priority::declared, priority::planned}) EXPECT_EQ(nice(how), back);
    // It cannot be taken back, so both kinds are kept, each for its own.
    auto holding = submit(make_job("unit", hold()), priority::declared);
    ASSERT_TRUE(eventually([&] { return held().size() == 1; }));
    EXPECT_EQ(nice(priority::blocking), plain);
    release();
    EXPECT_TRUE(holding.get());
    EXPECT_EQ(pool_->count().started, 2u);
    for (int turn = 0; turn < 3; ++turn) {
        EXPECT_EQ(nice(priority::declared), back);
        EXPECT_EQ(nice(priority::blocking), plain);
    }
    EXPECT_EQ(pool_->count().started, 2u);
}

// One CPU for everybody, which others use up: a job that stepped back for them gets next to nothing of it.
class crowded_pool_test : public worker_pool_test {
protected:
    void SetUp() override {
        worker_pool_test::SetUp();
        if (own_nice() > 10) GTEST_SKIP() << "this process has stepped back itself";
        cpu_set_t one;
        CPU_ZERO(&one);
        ASSERT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0);
        int cpu = 0;
        while (!CPU_ISSET(cpu, &before_)) ++cpu;
        CPU_SET(cpu, &one);
        ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);  // threads and processes made from here on, too
        for (int n = 0; n < 3; ++n)
            others_.emplace_back([this] {
                while (!over_) continue;
            });
        open(options(1));
        fs::create_directories(scratch("hold"));
    }
    void TearDown() override {
        over_ = true;
        others_.clear();
        if (CPU_COUNT(&before_) > 0) ::sched_setaffinity(0, sizeof before_, &before_);
        worker_pool_test::TearDown();
    }
    job turning() { return make_job("unit", "turn " + scratch("hold").native()); }

private:
    cpu_set_t before_{};
    std::atomic<bool> over_{false};
    std::vector<std::jthread> others_;
};

TEST_F(crowded_pool_test, a_job_that_somebody_waits_for_by_now_is_begun_anew_where_others_leave_it_no_time) {
    worker_pool::ticket ticket = 0;
    auto made = submit(turning(), priority::declared, &ticket);
    EXPECT_TRUE(eventually([&] { return held().size() == 1; }));
    EXPECT_EQ(pool_->count().started, 1u) << "nobody waits: it has time";
    pool_->raise(ticket, priority::blocking);
    EXPECT_TRUE(eventually([&] { return held().size() == 2; })) << "begun anew";
    release();
    EXPECT_TRUE(made.get());
    EXPECT_EQ(pool_->count().started, 2u);
    EXPECT_EQ(pool_->count().died, 0u);
    EXPECT_EQ(pool_->count().retried, 0u);
}

TEST_F(crowded_pool_test, what_somebody_waits_for_does_not_wait_for_a_job_that_others_leave_no_time) {
    worker_pool::ticket ticket = 0;
    auto unhurried = submit(turning(), priority::declared, &ticket);
    EXPECT_TRUE(eventually([&] { return held().size() == 1; }));
    auto urgent = submit(make_job("other", "echo at once"), priority::blocking);
    EXPECT_EQ(urgent.wait_for(30s), std::future_status::ready) << "all workers were busy with what nobody waits for";
    EXPECT_TRUE(eventually([&] { return held().size() == 2; })) << "begun anew, afterwards";
    EXPECT_FALSE(pool_->cancel(ticket)) << "it runs";
    pool_->raise(ticket, priority::blocking);
    release();
    EXPECT_TRUE(unhurried.get());
    EXPECT_EQ(pool_->count().died, 0u);
    EXPECT_EQ(pool_->count().retried, 0u);
}

TEST_F(worker_pool_test, what_a_failed_compile_read_is_told_before_its_end) {
    open(options(1));
    std::promise<std::vector<dependency>> told;
    auto promise = std::make_shared<std::promise<void>>();
    pool_->submit(make_job("unit", "refuse q.h is not there"), priority::blocking,
                  [promise](outcome const&) { promise->set_value(); },
                  {.read = [&](std::vector<dependency> what) { told.set_value(std::move(what)); }});
    promise->get_future().get();
    auto read = told.get_future();
    ASSERT_EQ(read.wait_for(0s), std::future_status::ready);
    EXPECT_EQ(read.get().at(0).path, "q.h");
}

TEST_F(worker_pool_test, a_worker_starts_also_where_the_host_has_closed_its_standard_descriptors) {
    auto const saved = std::array{::dup(0), ::dup(1), ::dup(2)};
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    open(options(1));
    auto const made = submit("surroundings").get();
    pool_.reset();
    for (int fd = 0; fd < 3; ++fd) {
        ::dup2(saved[static_cast<std::size_t>(fd)], fd);
        ::close(saved[static_cast<std::size_t>(fd)]);
    }
    EXPECT_THAT(image_text(made), ::testing::HasSubstr("fds=0,1,2,3"));
}

TEST_F(worker_pool_test, closing_the_pool_cancels_what_runs_and_what_waits) {
    open(options(2));
    std::vector<std::future<outcome>> all;
    for (int i = 0; i < 5; ++i) all.push_back(submit(hold()));
    ASSERT_TRUE(eventually([&] { return held().size() == 2; }));
    auto const pids = held();
    base::stopwatch const watch;
    pool_.reset();
    EXPECT_LT(watch.ms(), 200 * slowness);
    for (auto& one : all) EXPECT_EQ(one.get().error().code(), errc::cancelled);
    for (auto const pid : pids)
        EXPECT_TRUE(eventually([&] { return !fs::exists(fmt::format("/proc/{}", pid)); })) << "not reaped";
    for (auto const& e : events(event_kind::worker_ended)) EXPECT_EQ(e.reason.view(), "parent");
    EXPECT_EQ(events_.count(event_kind::worker_ended), 2u);
}

TEST_F(worker_pool_test, the_last_completion_may_destroy_the_pool) {
    // The pool's thread outlives the pool for a moment, and with it what the pool refers to.
    auto& events = event_log::process();
    auto const before = events.count(event_kind::worker_ended);
    pool_ = std::make_unique<worker_pool>(options(1), events);
    std::promise<void> gone;
    pool_->submit(make_job("last", "echo"), priority::blocking, [&](outcome const&) {
        pool_.reset();
        gone.set_value();
    });
    gone.get_future().get();
    EXPECT_TRUE(eventually([&] { return events.count(event_kind::worker_ended) == before + 1; }));
}

TEST_F(worker_pool_test, relative_directories_mean_the_hosts) {
    open({.workers = 0, .in_process = [](job const& j) -> outcome {
              auto const& u = std::get<compile_job>(j.task).unit;
              return fail(errc::compile_failed, "{} {} {}", u.directory, fmt::join(u.include_dirs, " "),
                          fmt::join(u.options, " "));
          }});
    auto work = make_job("unit", "");
    auto& unit = std::get<compile_job>(work.task).unit;
    unit.directory = "here";
    unit.include_dirs = {"there", "/elsewhere"};
    unit.options = {"-Ia", "-I", "b", "--include-path=c", "--include-path", "d", "-I/e", "-I g", "-DI=f"};
    // Every process has another, also where a link leads there.
    auto const scratch = base::temporary_directory::make().value();
    auto const link = (scratch.path() / "link").native();
    fs::create_symlink("/proc/self/cwd", link);
    unit.include_dirs.push_back("/proc/self/cwd");
    unit.include_dirs.push_back(link);
    auto const cwd = fs::current_path().native();
    EXPECT_EQ(submit(std::move(work)).get().error().message(),
              fmt::format("{0}/here {0}/there /elsewhere {0} {0} {0}/a {0}/b {0}/c {0}/d /e {0}/g -DI=f", cwd));
}

}  // namespace kiln::compile::testing
