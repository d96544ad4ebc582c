// SPDX-License-Identifier: Apache-2.0
// A server on loopback that says what a test tells it to, right or wrong, one thread for each connection.
#pragma once

#include "support/fault_proxy.hpp"

namespace kiln::test {

class told_http {
public:
    // One connection as the script of a test sees it.
    class connection {
    public:
        explicit connection(base::file_descriptor fd) : fd_{std::move(fd)} {}
        // Head and body of the next request; empty at the end.
        std::string request() {
            std::string out;
            while (out.find("\r\n\r\n") == out.npos) {
                if (!read_some(out)) return {};
            }
            auto const at = out.find("Content-Length: ");
            auto const body = at == out.npos ? 0 : static_cast<std::size_t>(std::atoll(out.c_str() + at + 16));
            auto const whole = out.find("\r\n\r\n") + 4 + body;
            while (out.size() < whole) {
                if (!read_some(out)) return {};
            }
            return out;
        }
        // False: nobody listens any more.
        bool say(std::string_view text, int flags = 0) {
            while (!text.empty()) {
                auto const n = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | flags);
                if (n <= 0) return false;
                sent_ += static_cast<std::size_t>(n);
                text.remove_prefix(static_cast<std::size_t>(n));
            }
            return true;
        }
        // No copy of the body: of what a test holds it measures the memory.
        bool answer(int status, std::string_view body = {}, std::string_view headers = {}) {
            auto const head =
                fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\n{}\r\n", status, body.size(), headers);
            return say(head, body.empty() ? 0 : MSG_MORE) && say(body);
        }
        [[nodiscard]] std::size_t sent() const { return sent_; }
        [[nodiscard]] int socket() const { return fd_.get(); }

    private:
        bool read_some(std::string& out) {
            char some[4096];
            auto const n = ::recv(fd_.get(), some, sizeof some, 0);
            if (n > 0) out.append(some, static_cast<std::size_t>(n));
            return n > 0;
        }
        base::file_descriptor fd_;
        std::size_t sent_ = 0;
    };
    using script = std::function<void(connection&)>;

    explicit told_http(script what) : what_{std::move(what)}, accepts_{[this] { run(); }} {}
    ~told_http() {
        stop_ = true;
        ::shutdown(listening_.get(), SHUT_RDWR);
        accepts_.join();
        {
            std::lock_guard const lock{mutex_};
            for (int const fd : open_) ::shutdown(fd, SHUT_RDWR);
        }
        for (auto& t : threads_) t.join();
    }
    [[nodiscard]] std::uint16_t port() const { return port_of(listening_); }
    [[nodiscard]] std::string place() const { return "127.0.0.1:" + std::to_string(port()); }
    [[nodiscard]] std::string url() const { return "http://" + place(); }
    [[nodiscard]] int connections() const { return connections_; }
    // The most that one connection was sent.
    [[nodiscard]] std::size_t sent() const { return sent_; }

private:
    void run() {
        while (!stop_) {
            base::file_descriptor fd{::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
            if (!fd) continue;
            ++connections_;
            std::lock_guard const lock{mutex_};
            open_.push_back(fd.get());
            threads_.emplace_back([this, c = std::make_shared<connection>(std::move(fd))] {
                what_(*c);
                if (c->sent() > sent_) sent_ = c->sent();
                std::lock_guard const inner{mutex_};
                std::erase(open_, c->socket());
            });
        }
    }
    script what_;
    base::file_descriptor listening_ = listen_on_loopback();
    std::atomic<bool> stop_{false};
    std::atomic<int> connections_{0};
    std::atomic<std::size_t> sent_{0};
    std::mutex mutex_;
    std::vector<int> open_;
    std::vector<std::thread> threads_;
    std::thread accepts_;  // last: it uses everything above
};

}  // namespace kiln::test
