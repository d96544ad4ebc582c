// SPDX-License-Identifier: Apache-2.0
// A connection with TLS and nothing on it yet, by libcurl: for protocols that are not HTTP.
#pragma once

#include "remote/curl_api.hpp"

namespace kiln::remote {

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

}  // namespace kiln::remote
