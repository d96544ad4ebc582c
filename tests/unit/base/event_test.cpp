// SPDX-License-Identifier: Apache-2.0
#include <kiln/event.hpp>

#include "base/files.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <future>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln {

TEST(events, are_kept_in_order_and_counted) {
    event_log log;
    for (int i = 0; i < 3; ++i) log.emit({.kind = event_kind::found, .unit = "u", .value = i});
    auto const all = log.recent();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[2].value, 2);
    EXPECT_EQ(all[2].unit.view(), "u");
    EXPECT_GT(all[2].time_ns, 0);
    EXPECT_EQ(log.count(event_kind::found), 3u);
    EXPECT_EQ(log.count(event_kind::missed), 0u);
}

TEST(events, the_ring_is_bounded_and_the_counters_are_not) {
    event_log log;
    for (int i = 0; i < 10'000; ++i) log.emit({.kind = event_kind::note, .value = i});
    auto const all = log.recent();
    EXPECT_LE(all.size(), 4096u);
    EXPECT_EQ(all.back().value, 9'999);
    EXPECT_EQ(log.count(event_kind::note), 10'000u);
}

TEST(events, long_text_is_cut_not_lost) {
    event_log log;
    log.emit({.detail = std::string(1000, 'x')});
    EXPECT_EQ(log.recent().front().detail.view().size(), 127u);
}

TEST(events, texts_of_every_length_come_back_from_the_ring_whole) {
    std::string letters;
    for (int i = 0; i < 127; ++i) letters += static_cast<char>('a' + i % 26);
    event_log log;
    for (std::size_t n = 0; n <= letters.size(); ++n) {
        event e{.kind = event_kind::transferred,
                .unit = letters.substr(0, n % 48),
                .target = letters.substr(3, n % 16),
                .reason = letters.substr(5, n % 32),
                .detail = letters.substr(0, n / 2),
                .key = n,
                .request = n + 1,
                .duration_ns = -static_cast<std::int64_t>(n),
                .value = ~std::int64_t{0},
                .time_ns = 7};
        e.detail.append(letters.substr(n / 2, n - n / 2));
        log.emit(e);
    }
    auto const all = log.recent();
    ASSERT_EQ(all.size(), letters.size() + 1);
    for (std::size_t n = 0; n < all.size(); ++n) {
        EXPECT_EQ(all[n].kind, event_kind::transferred);
        EXPECT_EQ(all[n].unit.view(), letters.substr(0, n % 48));
        EXPECT_EQ(all[n].target.view(), letters.substr(3, n % 16));
        EXPECT_EQ(all[n].reason.view(), letters.substr(5, n % 32));
        EXPECT_EQ(all[n].detail.view(), letters.substr(0, n));
        EXPECT_EQ(all[n].key, n);
        EXPECT_EQ(all[n].request, n + 1);
        EXPECT_EQ(all[n].duration_ns, -static_cast<std::int64_t>(n));
        EXPECT_EQ(all[n].value, -1);
        EXPECT_EQ(all[n].time_ns, 7);
        EXPECT_EQ(all[n].sequence, n);
        EXPECT_EQ(all[n].thread, all[0].thread);
    }
}

TEST(events, many_threads_lose_nothing) {
    event_log log;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&log, t] {
            for (int i = 0; i < 1000; ++i) {
                log.emit({.kind = event_kind::waited, .value = t});
                if (i % 100 == 0) (void)log.recent(16);
            }
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(log.count(event_kind::waited), 8'000u);
}

TEST(events, are_written_as_json_lines) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "events.jsonl";
    event_log log;
    ASSERT_TRUE(log.write_to(file));
    log.emit({.kind = event_kind::compile_failed,
              .unit = "a\"b",
              .detail = "line\nbreak\t\x01",
              .key = 0x1234,
              .request = 0x5678,
              .duration_ns = 5});
    log.write_to("");
    std::ifstream in{file};
    std::string line;
    ASSERT_TRUE(std::getline(in, line));
    auto const j = nlohmann::json::parse(line);
    EXPECT_EQ(j["kind"], "compile_failed");
    EXPECT_EQ(j["unit"], "a\"b");
    EXPECT_EQ(j["detail"], "line\nbreak\t\x01");
    EXPECT_EQ(j["key"], "0000000000001234");
    EXPECT_EQ(j["request"], "0000000000005678");
    EXPECT_EQ(j["ns"], 5);
}

// A program may have closed its standard streams, and go on writing to them.
TEST(events, are_alone_in_their_file_where_there_are_no_standard_streams) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "events.jsonl";
    auto const tell = [&] {
        for (int const stream : {0, 1, 2}) ::close(stream);
        event_log log;
        if (!log.write_to(file)) ::_exit(1);
        log.emit({.kind = event_kind::waited, .unit = "one"});
        for (int const stream : {0, 1, 2})
            if (::write(stream, "said to nobody\n", 15) >= 0) ::_exit(2);
        ::_exit(0);
    };
    EXPECT_EXIT(tell(), testing::ExitedWithCode(0), "");
    std::ifstream in{file};
    std::string line;
    ASSERT_TRUE(std::getline(in, line));
    EXPECT_EQ(nlohmann::json::parse(line)["unit"], "one");
    EXPECT_FALSE(std::getline(in, line)) << line;
}

// As programs do that become daemons: whatever has the number of our descriptor then is theirs.
TEST(events, are_not_written_into_a_file_that_took_the_place_of_theirs) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "events", mine = scratch.path() / "mine";
    auto const lines = [](std::filesystem::path const& of) {
        std::ifstream in{of};
        return std::count(std::istreambuf_iterator<char>{in}, {}, '\n');
    };
    event_log log;
    ASSERT_TRUE(log.write_to(file));
    log.emit({.kind = event_kind::note});
    int ours = -1;
    for (int fd = 3; fd < 1024 && ours < 0; ++fd) {
        std::error_code none;
        if (std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), none) == file) ours = fd;
    }
    ASSERT_GE(ours, 0);
    int const other = ::open(mine.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(::dup3(other, ours, O_CLOEXEC), ours);
    log.emit({.kind = event_kind::note});
    log.emit({.kind = event_kind::note});
    EXPECT_EQ(std::filesystem::file_size(mine), 0u);
    EXPECT_EQ(lines(file), 3) << "opened again, once";

    // Gone altogether: nothing is written, and nothing is made in its place.
    std::filesystem::remove(file);
    for (int fd = 3; fd < 1024; ++fd) {
        std::error_code none;
        auto const at = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), none).native();
        if (at.starts_with(file.native())) ::dup3(other, fd, O_CLOEXEC);
    }
    log.emit({.kind = event_kind::note});
    EXPECT_EQ(std::filesystem::file_size(mine), 0u);
    EXPECT_FALSE(std::filesystem::exists(file));
    ::close(ours);
    ::close(other);
}

TEST(events, subscribers_hear_until_they_let_go) {
    event_log log;
    int heard = 0;
    auto token = log.subscribe([&](event const&) { ++heard; });
    log.emit({});
    token.reset();
    log.emit({});
    EXPECT_EQ(heard, 1);
}

TEST(events, are_json_whatever_the_text_is) {
    std::string japanese;
    for (int i = 0; i < 60; ++i) japanese += "\xE3\x82\xAB";  // three bytes each: cut somewhere inside
    for (std::size_t shift = 0; shift < 3; ++shift) {
        event const e{.unit = std::string(shift, 'a') + japanese, .detail = std::string(shift, 'b') + japanese};
        auto const j = nlohmann::json::parse(to_json(e), nullptr, false);
        ASSERT_TRUE(j.is_object()) << shift;
        EXPECT_TRUE(j["unit"].get<std::string>().ends_with("\xE3\x82\xAB")) << "cut at a character";
        EXPECT_GE(j["unit"].get<std::string>().size(), 45u);
    }
    auto const j = nlohmann::json::parse(to_json({.unit = "bad\xFF\xC0\xAFname"}), nullptr, false);
    ASSERT_TRUE(j.is_object());
    EXPECT_EQ(j["unit"], "bad\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDname");
}

TEST(events, of_a_fork_are_told_although_its_parent_was_telling) {
    event_log log;
    std::promise<void> told, go_on;
    auto const parent = ::getpid();
    auto const token = log.subscribe([&](event const&) {
        if (::getpid() != parent) return;
        told.set_value();
        go_on.get_future().wait();
    });
    std::thread teller{[&] { log.emit({.unit = "first"}); }};
    told.get_future().wait();
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(20);
        log.emit({.unit = "second"});
        ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    go_on.set_value();
    teller.join();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it waited for a thread it does not have";
}

TEST(events, may_be_subscribed_to_by_who_hears_one) {
    event_log log;
    int heard = 0;
    event_log::subscription second;
    auto const first = log.subscribe([&](event const&) {
        if (!second) second = log.subscribe([&](event const&) { ++heard; });
    });
    log.emit({});
    EXPECT_EQ(heard, 0) << "from the next on";
    log.emit({});
    EXPECT_EQ(heard, 1);
}

class events_into_a_pipe : public testing::Test {
protected:
    void SetUp() override { ASSERT_EQ(::mkfifo(fifo_.c_str(), 0600), 0); }
    [[nodiscard]] base::file_descriptor reader() const {
        return base::file_descriptor{::open(fifo_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    }
    base::temporary_directory scratch_ = base::temporary_directory::make().value();
    std::string fifo_ = scratch_.path() / "fifo";
};

TEST_F(events_into_a_pipe, that_nobody_reads_are_not_waited_for) {
    event_log log;
    EXPECT_FALSE(log.write_to(fifo_));
    log.emit({});
}

TEST_F(events_into_a_pipe, do_not_end_the_program_when_their_reader_ends) {
    event_log log;
    auto in = reader();
    ASSERT_TRUE(log.write_to(fifo_));
    log.emit({.unit = "heard"});
    char text[512] = {};
    ASSERT_GT(::read(in.get(), text, sizeof text - 1), 0);
    EXPECT_NE(std::string_view{text}.find("heard"), std::string_view::npos);
    in.reset();
    for (int i = 0; i < 3; ++i) log.emit({});  // SIGPIPE ends a process, and this test with it
    ::sigset_t pending;
    ::sigpending(&pending);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0) << "nothing is left behind";
    EXPECT_EQ(log.count(event_kind::note), 4u);
}

TEST_F(events_into_a_pipe, wait_a_second_once_for_a_reader_that_stopped) {
    event_log log;
    auto const in = reader();
    ASSERT_TRUE(log.write_to(fifo_));
    auto const before = std::chrono::steady_clock::now();
    for (int i = 0; i < 2000; ++i) log.emit({.detail = std::string(120, 'x')});  // three pipes full
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds{10});
}

}  // namespace kiln
