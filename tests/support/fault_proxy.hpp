// SPDX-License-Identifier: Apache-2.0
// Stands between a client and a server on loopback and does to their talk what a test says: nothing, delay, cut, reset, flip, drip, or never a
// word. Also servers that are none: a port that drops connections, and one that says what it is told.
#pragma once

#include "support/servers.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <poll.h>
#include <thread>

namespace kiln::test {

inline base::file_descriptor listen_on_loopback(int backlog = 64) {
    base::file_descriptor s{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ::sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)::bind(s.get(), reinterpret_cast<::sockaddr*>(&a), sizeof a);
    (void)::listen(s.get(), backlog);
    return s;
}
inline std::uint16_t port_of(base::file_descriptor const& s) {
    ::sockaddr_in a{};
    ::socklen_t size = sizeof a;
    (void)::getsockname(s.get(), reinterpret_cast<::sockaddr*>(&a), &size);
    return ntohs(a.sin_port);
}

// A listening socket whose queue is full drops what comes: to a client the other side does not exist.
class black_hole {
public:
    black_hole() {
        for (int i = 0; i < 8; ++i) {
            base::file_descriptor s{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
            ::sockaddr_in a{};
            a.sin_family = AF_INET;
            a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            a.sin_port = htons(port());
            (void)::connect(s.get(), reinterpret_cast<::sockaddr*>(&a), sizeof a);
            waiting_.push_back(std::move(s));
        }
    }
    [[nodiscard]] std::uint16_t port() const { return port_of(listening_); }

private:
    base::file_descriptor listening_ = listen_on_loopback(0);
    std::vector<base::file_descriptor> waiting_;
};

class fault_proxy {
public:
    // What is done with bytes on their way from the server: changed in place. False: the connection is cut instead.
    using rule = std::function<bool(std::string& bytes)>;

    // Port 0: there is no server behind it, and nobody ever answers.
    explicit fault_proxy(std::uint16_t server) : server_{server}, thread_{[this] { run(); }} {}
    ~fault_proxy() {
        stop_ = true;
        thread_.join();
    }
    [[nodiscard]] std::uint16_t port() const { return port_of(listening_); }
    [[nodiscard]] std::string redis() const { return "redis://127.0.0.1:" + std::to_string(port()); }
    void set(rule r) {
        std::lock_guard const lock{mutex_};
        rule_ = std::move(r);
    }
    // Instead of whatever a server would say.
    void say(std::string text) {
        std::lock_guard const lock{mutex_};
        said_ = std::move(text);
    }
    [[nodiscard]] int connections() const { return connections_; }

private:
    struct pair {
        base::file_descriptor client, server;
    };
    void run() {
        std::vector<pair> pairs;
        while (!stop_) {
            std::vector<::pollfd> all{{listening_.get(), POLLIN, 0}};
            for (auto const& p : pairs) {
                all.push_back({p.client.get(), POLLIN, 0});
                if (p.server) all.push_back({p.server.get(), POLLIN, 0});
            }
            if (::poll(all.data(), all.size(), 20) <= 0) continue;
            if (all[0].revents != 0) {
                ++connections_;
                pair fresh{base::file_descriptor{::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)}, {}};
                if (server_ != 0) fresh.server = connect_to(server_);
                pairs.push_back(std::move(fresh));
            }
            auto const seen = [&](base::file_descriptor const& fd) {
                for (auto const& p : all) {
                    if (fd && p.fd == fd.get()) return p.revents != 0;
                }
                return false;
            };
            std::erase_if(pairs, [&](pair& p) {
                return (seen(p.client) && !from_client(p)) || (seen(p.server) && !from_server(p));
            });
        }
    }
    bool from_client(pair& p) {
        std::string some(1 << 16, '\0');
        auto const n = ::read(p.client.get(), some.data(), some.size());
        if (n <= 0) return false;
        std::string said;
        {
            std::lock_guard const lock{mutex_};
            said = said_;
        }
        if (!said.empty()) return ::write(p.client.get(), said.data(), said.size()) > 0;
        if (!p.server) return true;
        return ::write(p.server.get(), some.data(), static_cast<std::size_t>(n)) == n;
    }
    bool from_server(pair& p) {
        std::string some(1 << 16, '\0');
        auto const n = ::read(p.server.get(), some.data(), some.size());
        if (n <= 0) return false;
        some.resize(static_cast<std::size_t>(n));
        rule change;
        {
            std::lock_guard const lock{mutex_};
            change = rule_;
        }
        if (change && !change(some)) return false;
        return some.empty() || ::write(p.client.get(), some.data(), some.size()) == static_cast<long>(some.size());
    }

    std::uint16_t server_;
    base::file_descriptor listening_ = listen_on_loopback();
    std::atomic<bool> stop_{false};
    std::atomic<int> connections_{0};
    std::mutex mutex_;
    rule rule_;
    std::string said_;
    std::thread thread_;  // last: it uses everything above
};

}  // namespace kiln::test
