// SPDX-License-Identifier: Apache-2.0
#include <kiln/event.hpp>

#include "base/files.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <thread>

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

TEST(events, subscribers_hear_until_they_let_go) {
    event_log log;
    int heard = 0;
    auto token = log.subscribe([&](event const&) { ++heard; });
    log.emit({});
    token.reset();
    log.emit({});
    EXPECT_EQ(heard, 1);
}

}  // namespace kiln
