// SPDX-License-Identifier: Apache-2.0
// A client of a remote by itself: servers that say what a test wants, on the reactor's thread, and no socket.
#pragma once

#include "remote/remote_tier.hpp"
#include "remote/rules.hpp"

#include <optional>

namespace kiln::test {

// What a test says of get() is all it does.
class told_bytes : public remote::byte_server {
public:
    explicit told_bytes(remote::reactor& loop) : loop_{loop} {}
    void put(base::digest const&, std::shared_ptr<base::bytes const>, remote::put_rule,
             std::function<void(remote::put_answer)>) override {}
    void remove(base::digest const&, std::function<void(remote::failure)>) override {}
    void ping(std::function<void(remote::failure)>) override {}
    [[nodiscard]] std::size_t batch() const noexcept override { return 256; }
    void close() noexcept override {}

protected:
    // Never before the call has returned.
    void later(remote::reactor::task what) { loop_.at(base::clock::now(), std::move(what)); }

private:
    remote::reactor& loop_;
};

// All but its servers. The client is made by the first thing done with it, and ends on its thread.
class client_alone {
public:
    explicit client_alone(std::string const& remote)
        : rules_{.options = remote::parse_remotes(remote, {}).usable.at(0), .believed = {}, .signs = {}} {
        rules_.believed = remote::trust_of(rules_.options).value();
    }
    ~client_alone() { stop(); }

    remote::reactor loop;
    remote::check_threads checks{loop};
    event_log log;

    // On the reactor's thread.
    template <class What>
    [[nodiscard]] bool with(remote::byte_server& bytes, remote::lease_server* leases, What what) {
        return loop.post([this, &bytes, leases, what = std::move(what)] {
            if (!asks_) {
                asks_.emplace(remote::client_parts{.rules = rules_,
                                                   .loop = loop,
                                                   .guard = guard_,
                                                   .counts = counts_,
                                                   .refused = refused_,
                                                   .events = events_,
                                                   .bytes = bytes,
                                                   .leases = leases,
                                                   .aside = checks});
            }
            what(*asks_);
        });
    }
    // Before the servers end.
    void stop() {
        loop.stop([this] { asks_.reset(); });
    }

private:
    remote::client_rules rules_;
    remote::breaker guard_;
    remote::tally counts_;
    store::refusals refused_;
    store::event_outlet events_{&log};
    std::optional<remote::client> asks_;
};

}  // namespace kiln::test
