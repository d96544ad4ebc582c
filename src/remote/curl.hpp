// SPDX-License-Identifier: Apache-2.0
//
// libcurl, opened at run time: whoever has no remote over HTTP loads none of its thirty libraries, and Kiln builds without it. Names
// and numbers are those of its stable binary interface. Transfers run on the reactor's thread, eight at a time.
#pragma once

#include "remote/byte_server.hpp"
#include "remote/reactor.hpp"

#include <deque>

namespace kiln::remote {

// Resolved once; see libcurl's own documentation for what each does.
struct curl_api {
    using handle = void*;
    struct list {
        char* data;
        list* next;
    };
    struct certificates {
        int count;
        list** each;
    };
    struct message {
        int what;
        handle easy;
        union {
            void* whatever;
            int result;
        } data;
    };
    struct wait_fd {
        int fd;
        short events, revents;
    };
    handle (*easy_init)();
    int (*easy_setopt)(handle, int, ...);
    int (*easy_getinfo)(handle, int, ...);
    void (*easy_cleanup)(handle);
    int (*easy_perform)(handle);
    int (*easy_send)(handle, void const*, std::size_t, std::size_t*);
    int (*easy_recv)(handle, void*, std::size_t, std::size_t*);
    char const* (*easy_strerror)(int);
    list* (*slist_append)(list*, char const*);
    void (*slist_free_all)(list*);
    handle (*multi_init)();
    int (*multi_setopt)(handle, int, ...);
    int (*multi_add_handle)(handle, handle);
    int (*multi_remove_handle)(handle, handle);
    int (*multi_perform)(handle, int*);
    int (*multi_poll)(handle, wait_fd*, unsigned, int, int*);
    message* (*multi_info_read)(handle, int*);
    int (*multi_cleanup)(handle);
};
// Loads it. The first call takes milliseconds.
[[nodiscard]] result<curl_api const*> load_curl();

// A connection with TLS and nothing on it yet: for protocols that are not HTTP.
class tls_stream {
public:
    struct peer {
        std::string host;
        std::uint16_t port = 0;
        std::chrono::milliseconds timeout{1'000};
        std::string ca{}, certificate{}, certificate_key{};
    };
    // Resolves, connects and shakes hands: blocks. The certificate is checked, there is no way around it.
    struct attempt;
    [[nodiscard]] static attempt connect(peer const& to);
    ~tls_stream();
    tls_stream(tls_stream const&) = delete;
    tls_stream& operator=(tls_stream const&) = delete;

    [[nodiscard]] int socket() const noexcept { return socket_; }
    // As send(2) and recv(2) on a socket that does not block: -1 with errno.
    long send(void const* data, std::size_t size) noexcept;
    long recv(void* data, std::size_t size) noexcept;
    // Of the server, in PEM form.
    [[nodiscard]] std::string certificate() const;

private:
    tls_stream(curl_api const* api, curl_api::handle easy, int socket) noexcept
        : api_{api}, easy_{easy}, socket_{socket} {}
    curl_api const* api_;
    curl_api::handle easy_;
    int socket_;
};
struct tls_stream::attempt {
    std::unique_ptr<tls_stream> stream;  // null: see why
    failure why;
};

struct http_request {
    std::string method = "GET";  // GET, HEAD, PUT, DELETE, POST
    std::string url{};
    std::vector<std::string> headers{};
    std::shared_ptr<base::bytes const> body{};
    std::size_t most = std::size_t{64} << 10;  // of the answer's body
    failure refused{};                         // set: it is not sent, and this is the answer
    bool follow = false;                       // redirects, to https only, without credentials
    bool tells_certificate = false;            // the answer has it, where a new connection was made
};
struct http_response {
    failure why{};  // no answer at all; every status is one
    long status = 0;
    base::bytes body{};
    std::vector<std::pair<std::string, std::string>> headers{};  // names in small letters
    std::string certificate{};                                   // of the server, in PEM form
    [[nodiscard]] std::string header(std::string_view name) const;
};

struct curl_options {
    std::chrono::milliseconds connect_timeout{1'000};
    std::chrono::milliseconds timeout{10'000};
    std::chrono::milliseconds idle{2'000};
    std::chrono::seconds stall{0};  // given up after so long with less than a kilobyte a second; 0: only by `timeout`
    std::string ca{}, certificate{}, certificate_key{};
    std::string aws{};   // "aws:amz:REGION:s3": requests are signed
    std::string user{};  // "id:secret" for that
    std::size_t at_once = 8;
};

class curl_client {
public:
    curl_client(reactor& loop, curl_options options, byte_server::traffic& counted);
    ~curl_client();
    curl_client(curl_client const&) = delete;
    curl_client& operator=(curl_client const&) = delete;

    using answered = std::function<void(http_response)>;
    // `then` is never called before this returns.
    void send(http_request what, answered then);
    // What was not begun is answered by `why`.
    void refuse_waiting(failure const& why);
    // "id:secret", for what is begun from now on.
    void sign_as(std::string user) { options_.user = std::move(user); }
    void close() noexcept;
    std::function<void()> on_connected{};

private:
    struct transfer;
    using transfers = std::deque<std::unique_ptr<transfer>>;
    static void refuse(transfers const& some, failure const& why);
    [[nodiscard]] failure failure_of(transfer const& t, int code) const;
    [[nodiscard]] bool has_connection() const noexcept;
    void start_some();
    // How many are still under way.
    std::size_t perform();
    void start(std::unique_ptr<transfer> t);
    void collect();
    void finish(std::unique_ptr<transfer> t, int code);
    [[nodiscard]] bool open();
    void arm_idle();
    static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* to) noexcept;
    static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* to) noexcept;
    static std::size_t on_read(char* to, std::size_t size, std::size_t count, void* from) noexcept;
    static int on_ready(void* of, char*, char*, int, int) noexcept;

    reactor& loop_;
    curl_options options_;
    byte_server::traffic& counted_;
    curl_api const* api_ = nullptr;
    std::string no_api_;
    curl_api::handle multi_ = nullptr;
    transfers queue_;
    std::map<curl_api::handle, std::unique_ptr<transfer>> running_;
    reactor::timer start_timer_ = 0, idle_timer_ = 0, ended_timer_ = 0;
    bool only_ours_ = false;        // the last wait ended, and not for anything of libcurl's
    base::time_point performed_{};  // libcurl had the thread
};

}  // namespace kiln::remote
