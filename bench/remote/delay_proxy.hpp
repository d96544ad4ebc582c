// SPDX-License-Identifier: Apache-2.0
// A server on loopback as if it were farther away: what goes through here is held back for a while, each way.
#pragma once

#include "base/clock.hpp"
#include "base/files.hpp"

#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

class delay_proxy {
public:
    delay_proxy(std::uint16_t server, std::chrono::microseconds each_way) : server_{server}, each_way_{each_way} {
        auto at = place(0);
        (void)::bind(listening_.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at);
        (void)::listen(listening_.get(), 64);
        thread_ = std::thread{[this] { run(); }};
    }
    ~delay_proxy() {
        ends_ = true;
        thread_.join();
    }
    [[nodiscard]] std::uint16_t port() const {
        ::sockaddr_in a{};
        ::socklen_t size = sizeof a;
        (void)::getsockname(listening_.get(), reinterpret_cast<::sockaddr*>(&a), &size);
        return ntohs(a.sin_port);
    }

private:
    struct held {
        kiln::base::time_point since;
        std::vector<char> bytes;
    };
    struct way {
        std::deque<held> under_way;
    };
    struct pair {
        kiln::base::file_descriptor client, server;
        way there{}, back{};
        bool over = false;
    };

    static ::sockaddr_in place(std::uint16_t port) {
        ::sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        a.sin_port = htons(port);
        return a;
    }
    static kiln::base::file_descriptor socket() {
        return kiln::base::file_descriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    }
    static void without_delay(kiln::base::file_descriptor const& fd) {
        int const one = 1;
        (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    void accept_one(std::vector<pair>& pairs) {
        pair fresh{.client = kiln::base::file_descriptor{::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)},
                   .server = socket()};
        auto const at = place(server_);
        if (::connect(fresh.server.get(), reinterpret_cast<::sockaddr const*>(&at), sizeof at) != 0) return;
        without_delay(fresh.client);
        without_delay(fresh.server);
        pairs.push_back(std::move(fresh));
    }
    static bool take(kiln::base::file_descriptor const& from, way& to) {
        std::vector<char> some(256 << 10);
        auto const n = ::recv(from.get(), some.data(), some.size(), MSG_DONTWAIT);
        if (n < 0) return errno == EAGAIN;
        if (n == 0) return false;
        some.resize(static_cast<std::size_t>(n));
        to.under_way.push_back({kiln::base::clock::now(), std::move(some)});
        return true;
    }
    void give(way& from, kiln::base::file_descriptor const& to) const {
        while (!from.under_way.empty() && kiln::base::clock::now() - from.under_way.front().since >= each_way_) {
            auto const& bytes = from.under_way.front().bytes;
            for (std::size_t sent = 0; sent < bytes.size();) {
                auto const n = ::send(to.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
                if (n <= 0) break;
                sent += static_cast<std::size_t>(n);
            }
            from.under_way.pop_front();
        }
    }
    // Looks without a pause: to be held back for half a millisecond is to be late by less than what is measured.
    void run() {
        std::vector<pair> pairs;
        while (!ends_) {
            ::pollfd listening{listening_.get(), POLLIN, 0};
            if (::poll(&listening, 1, pairs.empty() ? 10 : 0) > 0) accept_one(pairs);
            for (auto& p : pairs) {
                p.over = !take(p.client, p.there) || !take(p.server, p.back);
                give(p.there, p.server);
                give(p.back, p.client);
            }
            std::erase_if(pairs, [](pair const& p) { return p.over; });
        }
    }

    std::uint16_t server_;
    std::chrono::microseconds each_way_;
    kiln::base::file_descriptor listening_ = socket();
    std::atomic<bool> ends_{false};
    std::thread thread_;
};
