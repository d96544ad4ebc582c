// SPDX-License-Identifier: Apache-2.0
//
// One connection to Redis or Valkey: commands go out in the order they are given, several at a time, and answers come back in
// that order. Connects at the first command, closes itself after a while without work. On the reactor's thread.
#pragma once

#include "remote/byte_server.hpp"
#include "remote/reactor.hpp"
#include "remote/resp.hpp"
#include "remote/secrets.hpp"
#include "remote/settings.hpp"
#include "remote/tls_stream.hpp"

#include <deque>
#include <netinet/in.h>
#include <sys/socket.h>

namespace kiln::remote {

struct link_options {
    server_url at;
    std::optional<token_source> token{};  // nothing: nobody is told who we are
    std::chrono::milliseconds connect_timeout{1'000};
    std::chrono::milliseconds timeout{10'000};
    std::chrono::milliseconds idle{2'000};
    resp::limits limits{};
    std::string ca{}, certificate{}, certificate_key{};  // for rediss://
};

class redis_link {
public:
    struct reply {
        resp::value value{};
        failure why{};  // set: there is no value
    };
    using answered = std::function<void(reply)>;

    redis_link(reactor& loop, link_options options, byte_server::traffic& counted)
        : loop_{loop}, options_{std::move(options)}, counted_{counted} {
        back_->to = this;
    }
    ~redis_link();
    redis_link(redis_link const&) = delete;
    redis_link& operator=(redis_link const&) = delete;

    void send(std::vector<std::string_view> const& words, answered then);
    // Everything under way is answered by `why`.
    void fail_all(failure why);
    void close() noexcept;
    // Of the server, in PEM form; empty where there is no connection, or none with TLS.
    [[nodiscard]] std::string certificate() const { return tls_ ? tls_->certificate() : std::string{}; }
    std::function<void()> on_connected{};

private:
    struct waiting {
        std::string bytes;  // kept until answered: sent once more where a kept connection had died
        answered then;
    };
    enum class phase { closed, resolving, connecting, greeting, ready };

    void open();
    void open_tls();
    [[nodiscard]] int descriptor() const noexcept { return tls_ ? tls_->socket() : socket_.get(); }
    [[nodiscard]] long send_some(void const* data, std::size_t size) noexcept;
    [[nodiscard]] long receive_some(void* data, std::size_t size) noexcept;
    void resolved(std::vector<::sockaddr_storage> found, std::string const& why);
    void try_next();
    void attempted(int fd);
    void connected_by(base::file_descriptor socket);
    void leave_attempts() noexcept;
    void connected();
    void greet();
    void flush();
    void readable();
    void on_events(short events);
    void watch();
    void drop(failure why);
    // More than is taken is the answer to the first that waits. The others are asked again.
    void refuse_first(failure why);
    void open_soon();
    void lost(failure why);
    void arm_timeout();
    void arm_idle();
    void answer(resp::value v);
    void shut() noexcept;

    reactor& loop_;
    link_options options_;
    byte_server::traffic& counted_;
    phase phase_ = phase::closed;
    base::file_descriptor socket_;
    std::shared_ptr<tls_stream> tls_;  // instead of socket_
    std::vector<::sockaddr_storage> addresses_;
    std::size_t next_address_ = 0;
    std::vector<base::file_descriptor> attempts_;  // one for each address, until one is connected
    std::string no_address_;                       // why the last of them failed
    std::string out_;
    std::size_t sent_ = 0;
    std::deque<waiting> waiting_;
    std::size_t greetings_ = 0;  // answers to AUTH and SELECT still to come
    bool names_us_ = false;      // the next of them is to AUTH
    resp::decoder decoder_;
    bool used_ = false;     // this connection has answered a command before
    bool retried_ = false;  // what is under way was sent a second time
    reactor::timer connect_timer_ = 0, timeout_timer_ = 0, idle_timer_ = 0;
    // What a thread that resolves a name may still hold when this is gone.
    struct way_back {
        std::mutex mutex;
        redis_link* to = nullptr;
    };
    std::shared_ptr<way_back> back_ = std::make_shared<way_back>();
    reactor::timer open_timer_ = 0, next_timer_ = 0;
};

}  // namespace kiln::remote
