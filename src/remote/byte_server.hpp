// SPDX-License-Identifier: Apache-2.0
//
// What a server can do, whatever it is: keep bytes under names and, some of them, leases. Everything here runs on the reactor's
// thread and returns at once; answers come by callback, exactly one for each name, never before the call has returned.
#pragma once

#include "remote/names.hpp"

#include <chrono>
#include <functional>
#include <optional>

namespace kiln::remote {

// Kinds of faults: what the breaker and the counters go by.
enum class trouble {
    none,
    connect,   // no address, refused, no answer to the connection
    timeout,   // connected, and no answer in time
    cut,       // the connection ended in the middle
    protocol,  // not what a server of its kind says
    tls,
    server,     // 5xx and its like
    denied,     // 401, 403, NOAUTH, NOPERM
    busy,       // 429, 503: later
    full,       // 507, OOM: only writing rests
    too_large,  // more than is taken, by us or by the server (413): only this one
    library,    // libcurl is not here
};
[[nodiscard]] std::string_view name_of(trouble what) noexcept;

struct failure {
    trouble what = trouble::none;
    std::string detail{};  // for people: cut, without control characters, without secrets
    std::chrono::milliseconds retry_after{0};
    explicit operator bool() const noexcept { return what != trouble::none; }
};
// What a server said, fit to be shown.
[[nodiscard]] std::string clean_text(std::string_view from_server, std::size_t most = 100);

enum class presence { here, absent, too_large, failed };
struct got {
    presence state = presence::absent;
    base::bytes packet{};
    failure why{};
};

enum class put_rule { create, replace };
enum class put_state { stored, exists, failed };
struct put_answer {
    put_state state = put_state::stored;
    failure why{};
};

enum class lease_state { absent, held, open, ours };
struct lease_look {
    lease_state state = lease_state::absent;
    failure why{};
};

class lease_server {
public:
    virtual ~lease_server() = default;
    struct terms {
        std::chrono::milliseconds life{2'000};
        std::chrono::milliseconds open_for{30'000};
    };
    using looked = std::function<void(std::vector<lease_look>)>;
    using done = std::function<void(failure)>;
    // `ours`: taken. Else who has it.
    virtual void take(digest const& name, std::string const& token, std::function<void(lease_look)> then) = 0;
    virtual void look(std::vector<digest> const& names, looked then) = 0;
    // All three only if the lease is still this token's.
    virtual void renew(digest const& name, std::string const& token) = 0;
    virtual void end(digest const& name, std::string const& token, done then) = 0;
    virtual void mark_open(digest const& name, std::string const& token, std::string_view reason) = 0;
};

// A description for people: what a diagnosis wants to know.
struct server_facts {
    failure why{};  // set: it does not answer
    std::vector<std::pair<std::string, std::string>> said{};
    std::optional<int> certificate_days{};  // until it ends; nothing in clear text
};

class byte_server {
public:
    virtual ~byte_server() = default;
    using each = std::function<void(std::size_t index, got)>;
    virtual void get(std::vector<digest> const& names, each then) = 0;
    virtual void put(digest const& name, std::shared_ptr<base::bytes const> packet, put_rule rule,
                     std::function<void(put_answer)> then) = 0;
    virtual void remove(digest const& name, std::function<void(failure)> then) = 0;
    // Is it there and does it talk to us?
    virtual void ping(std::function<void(failure)> then) = 0;
    // Null: it keeps none.
    [[nodiscard]] virtual lease_server* leases() noexcept { return nullptr; }
    // The bytes that may be asked for with one call.
    [[nodiscard]] virtual std::size_t batch() const noexcept = 0;
    // Set by its owner: the first connection is there.
    std::function<void()> on_connected{};
    // What it costs: told by tests and by 'kiln remote status'.
    struct traffic {
        std::uint64_t requests = 0, in = 0, out = 0, connections = 0;
    };
    [[nodiscard]] traffic const& counted() const noexcept { return traffic_; }
    // What has not been sent yet is answered by `why` instead: nobody asks a server that does not answer.
    virtual void give_up_waiting(failure const& why) { (void)why; }
    // Closes what is open: what was asked is answered by `cut`.
    virtual void close() noexcept = 0;
    virtual void describe(std::function<void(server_facts)> then) {
        ping([then](failure f) { then({.why = std::move(f)}); });
    }

protected:
    traffic traffic_;
};

}  // namespace kiln::remote
