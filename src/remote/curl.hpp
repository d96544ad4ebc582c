// SPDX-License-Identifier: Apache-2.0
// Transfers over HTTP, by libcurl, on the reactor's thread: eight at a time.
#pragma once

#include "remote/curl_api.hpp"
#include "remote/reactor.hpp"

#include <deque>

namespace kiln::remote {

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
