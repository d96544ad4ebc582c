// SPDX-License-Identifier: Apache-2.0
//
// One remote as a tier of the store. It answers later: ask() costs its caller a post to the reactor's thread, and nothing at all
// while the server is out of reach. find(), list() and put() block, for the store's own threads, for tools and for tests. No
// file is read, no thread started and no socket opened before the first use. A forked child starts afresh.
#pragma once

#include "remote/client.hpp"

namespace kiln::remote {

class remote_tier final : public store::tier {
public:
    remote_tier(remote_options options, std::shared_ptr<store::event_outlet> events, put_rule rule = put_rule::create);
    ~remote_tier() override;

    [[nodiscard]] std::string_view name() const noexcept override { return "fleet"; }
    [[nodiscard]] store::tier_traits traits() const noexcept override;
    [[nodiscard]] std::string which() const override { return options_.at.text(); }
    [[nodiscard]] std::string_view why_in_vain() const noexcept override;
    [[nodiscard]] bool is_held_up(store::urgency how) const noexcept override;
    [[nodiscard]] result<store::lookup> find(store::address const& at, store::expectation const& expected) override;
    // Of a family nothing is known: only what is asked for by request is found.
    [[nodiscard]] result<std::vector<store::summary>> list(digest const& family,
                                                           std::optional<digest> const& request) override;
    [[nodiscard]] result<store::put_outcome> put(store::entry_ptr const& what) override;
    void ask(store::question const& what, store::answered then) override;
    void reject(store::address const& at) noexcept override;
    [[nodiscard]] store::statistics take_counts() override;

    // Waits for the last answer, as long as the server may take.
    [[nodiscard]] store::answer ask_sync(store::question const& what);

    [[nodiscard]] remote_options const& options() const noexcept { return options_; }
    // Why it is not used at all: a key that cannot be read. Empty where it is.
    [[nodiscard]] std::string trouble_with_keys();

    struct condition {
        failure why{};  // set: it does not answer
        double round_trip_ms = 0;
        bool breaker_open = false;
        std::string leases{};  // "by the server", ..., "none"
        std::vector<std::pair<std::string, std::string>> said{};
        std::optional<int> certificate_days{};
        std::chrono::nanoseconds typical{0}, slow{0};  // p50, p95 of answers so far
        byte_server::traffic traffic{};
    };
    // Asks the server now.
    [[nodiscard]] condition examine();
    // Writes, reads and removes a probe; takes a lease twice. What went wrong, empty where nothing did.
    [[nodiscard]] std::string try_writing();
    [[nodiscard]] std::string try_lease();

    // Runs `what` on the reactor's thread and waits for it to call back.
    template <class T>
    [[nodiscard]] std::optional<T> call(std::function<void(byte_server&, std::function<void(T)>)> what,
                                        std::chrono::milliseconds most);

    struct state;

private:
    [[nodiscard]] std::shared_ptr<state> current();
    [[nodiscard]] client_rules const* rules();
    // Without one being made.
    [[nodiscard]] std::shared_ptr<state> state_here() const noexcept;

    // The thread's as well, which may be left behind.
    struct common {
        base::per_process<breaker> guard{[] { return std::make_unique<breaker>(); }};
        tally counts;
        store::refusals refused;
        std::shared_ptr<store::event_outlet> events;

        base::forkable_mutex mutex;  // the members below
        std::optional<client_rules> rules;
        std::set<digest> condemned;
        std::map<digest, digest> given;  // payloads by key: what was given or put: what reject() is about

        [[nodiscard]] bool may_give(digest const& key, digest const& payload);
    };

    remote_options const options_;
    put_rule const rule_;
    std::shared_ptr<common> const common_ = std::make_shared<common>();

    mutable base::forkable_mutex mutex_;  // the members below
    std::shared_ptr<state> state_;
    std::string off_;
    bool keys_read_ = false;
};

// All of KILN_REMOTE, in order; those that cannot be used are an event each. A thread that is still waiting for a server may be the last to
// have one of them: what it tells goes through the outlet of the store, which is closed by then.
[[nodiscard]] std::vector<std::shared_ptr<store::tier>> make_tiers(base::config const& config,
                                                                   std::shared_ptr<store::event_outlet> const& events);

// What try_writing() puts on a server, and leaves there where nobody may remove: a packet, though of nothing, because not every server
// keeps other bytes as they are.
[[nodiscard]] base::bytes probe_packet();

// What keeps the bytes of a remote, and what keeps its leases where that is another.
struct servers {
    std::unique_ptr<byte_server> bytes;
    std::unique_ptr<byte_server> lease_keeper;  // null: `bytes`, or nobody
    lease_server* leases = nullptr;
};
[[nodiscard]] servers make_servers(reactor& loop, remote_options const& options);

}  // namespace kiln::remote
