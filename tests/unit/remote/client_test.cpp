// SPDX-License-Identifier: Apache-2.0
#include "remote/client.hpp"

#include "support/store_entries.hpp"

#include <gtest/gtest.h>

#include <future>
#include <latch>

namespace kiln::remote {

namespace {

using test::entry_of;

// Has the same large bytes under every name, at once.
class generous_server final : public byte_server {
public:
    generous_server(reactor& loop, std::size_t size) : loop_{loop}, size_{size} {}
    void get(std::vector<digest> const& names, each then) override {
        for (std::size_t i = 0; i < names.size(); ++i)
            loop_.at(base::clock::now(),
                     [this, i, then] { then(i, {.state = presence::here, .packet = base::bytes(size_), .why = {}}); });
    }
    void put(digest const&, std::shared_ptr<base::bytes const>, put_rule, std::function<void(put_answer)>) override {}
    void remove(digest const&, std::function<void(failure)>) override {}
    void ping(std::function<void(failure)>) override {}
    [[nodiscard]] std::size_t batch() const noexcept override { return 256; }
    void close() noexcept override {}

private:
    reactor& loop_;
    std::size_t size_;
};

TEST(client, what_waits_for_its_checks_is_bounded) {
    constexpr std::size_t size = std::size_t{8} << 20;
    constexpr int questions = 16;
    constexpr int aside = 8;  // 64 MiB
    client_rules const rules{
        .options = parse_remotes("redis://h trust=server patience=60s", {}).usable.at(0), .believed = {}, .signs = {}};
    reactor loop;
    check_threads checks{loop};
    breaker guard;
    tally counts;
    store::refusals refused;
    store::event_outlet events{nullptr};
    generous_server bytes{loop, size};
    std::optional<client> asks;
    std::latch go_on{1};
    std::atomic<int> answered{0};
    std::promise<void> those_not_aside, all;
    ASSERT_TRUE(loop.post([&] {
        asks.emplace(client_parts{.rules = rules,
                                  .loop = loop,
                                  .guard = guard,
                                  .counts = counts,
                                  .refused = refused,
                                  .events = events,
                                  .bytes = bytes,
                                  .leases = nullptr,
                                  .aside = checks});
        // Every thread that checks has something else to do.
        for (int i = 0; i < 4; ++i) checks.run([&] { go_on.wait(); }, [] {});
        for (unsigned n = 0; n < questions; ++n) {
            auto const at = entry_of(2 * n)->about.at;
            asks->ask({.family = at.family, .request = at.request, .key = at.key}, [&](store::answer const& a) {
                EXPECT_EQ(a.why, miss::bad_magic);
                auto const count = ++answered;
                if (count == questions - aside) those_not_aside.set_value();
                if (count == questions) all.set_value();
            });
        }
    }));
    EXPECT_EQ(those_not_aside.get_future().wait_for(std::chrono::seconds{20}), std::future_status::ready)
        << "they are kept until somebody has time for them, however many";
    go_on.count_down();
    EXPECT_EQ(all.get_future().wait_for(std::chrono::seconds{20}), std::future_status::ready);
    loop.stop([&] { asks.reset(); });
}

}  // namespace

}  // namespace kiln::remote
