// SPDX-License-Identifier: Apache-2.0
// A server on loopback that speaks Redis's protocol, and says what a test wants it to.
#pragma once

#include "remote/resp.hpp"
#include "support/told_http.hpp"

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>

namespace kiln::test {

inline std::string bulk(std::string_view text) { return fmt::format("${}\r\n{}\r\n", text.size(), text); }
inline constexpr char const* nothing = "$-1\r\n";
inline constexpr char const* hang_up = "";  // instead of an answer
inline constexpr char const* silence = " ";

class told_redis {
public:
    using words = std::vector<std::string>;
    using script = std::function<std::string(words const&)>;
    explicit told_redis(script what) : what_{std::move(what)}, server_{[this](told_http::connection& c) { talk(c); }} {}
    [[nodiscard]] std::string url() const { return "redis://" + server_.place(); }
    [[nodiscard]] std::uint16_t port() const { return server_.port(); }
    [[nodiscard]] int connections() const { return server_.connections(); }
    [[nodiscard]] int asked(std::string const& command) const {
        std::lock_guard const lock{mutex_};
        auto const at = asked_.find(command);
        return at == asked_.end() ? 0 : at->second;
    }
    // False: it was not, for half a minute.
    [[nodiscard]] bool wait_until_asked(std::string const& command) const {
        std::unique_lock lock{mutex_};
        return was_asked_.wait_for(lock, std::chrono::seconds{30}, [&] { return asked_.contains(command); });
    }

private:
    void talk(told_http::connection& c) {
        remote::resp::decoder d;
        std::array<std::byte, 4096> some;
        for (;;) {
            auto const n = ::recv(c.socket(), some.data(), some.size(), 0);
            if (n <= 0) return;
            d.feed(base::byte_span{some}.first(static_cast<std::size_t>(n)));
            for (auto next = d.next(); next && *next; next = d.next()) {
                words all;
                for (auto const& w : (*next)->items) all.emplace_back(w.text());
                {
                    std::lock_guard const lock{mutex_};
                    ++asked_[all.at(0)];
                }
                was_asked_.notify_all();
                auto const said = what_(all);
                if (said == silence) continue;
                if (said == hang_up || !c.say(said)) return;
            }
        }
    }
    script what_;
    mutable std::mutex mutex_;
    mutable std::condition_variable was_asked_;
    std::map<std::string, int> asked_;
    told_http server_;  // last: it uses everything above
};

// What every question is answered by when the answer to each name is the same.
inline std::string to_all(told_redis::words const& asked, std::string const& each) {
    if (asked[0] != "MGET") return each;
    std::string out = fmt::format("*{}\r\n", asked.size() - 1);
    for (std::size_t i = 1; i < asked.size(); ++i) out += each;
    return out;
}

inline bool is_about_leases(told_redis::words const& asked) {
    return asked.size() > 1 && asked[1].starts_with("kiln:1:l:");
}

}  // namespace kiln::test
