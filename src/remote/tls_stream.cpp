// SPDX-License-Identifier: Apache-2.0
#include "remote/tls_stream.hpp"

#include "base/exit_gate.hpp"
#include "remote/curl_numbers.hpp"
#include "remote/settings.hpp"

#include <array>
#include <cerrno>

namespace kiln::remote {

using namespace curl;

namespace {

constexpr int gone = 55;  // as libcurl says of a connection that ended

}  // namespace

tls_stream::attempt tls_stream::connect(peer const& to) {
    base::library_use const tls{base::stay::until_answered};
    if (!tls) return {nullptr, {trouble::cut, "the program ends"}};
    auto const loaded = load_curl();
    if (!loaded) return {nullptr, {trouble::library, std::string{loaded.error().message()}}};
    auto const& a = **loaded;
    auto* const h = a.easy_init();
    if (h == nullptr) return {nullptr, {trouble::library, "libcurl has no memory left"}};
    std::array<char, error_bytes> words{};
    auto const url = server_url{.by = scheme::https, .host = to.host, .port = to.port, .path = "/"}.text();
    auto const set = [&](int which, auto value) { (void)a.easy_setopt(h, which, value); };
    set(option::url, url.c_str());
    set(option::connect_only, 1L);
    set(option::alpn, 0L);
    set(option::no_signal, 1L);
    close_in_children(a, h);
    set(option::no_proxy, "*");  // proxies of the environment are for HTTP
    set(option::ssl_version, tls_1_2);
    set(option::verify_peer, 1L);
    set(option::verify_host, 2L);
    set(option::certificates, 1L);
    set(option::connect_timeout_ms, static_cast<long>(to.timeout.count()));
    set(option::error_buffer, words.data());
    if (!to.ca.empty()) set(option::ca_file, to.ca.c_str());
    if (!to.certificate.empty()) set(option::certificate, to.certificate.c_str());
    if (!to.certificate_key.empty()) set(option::certificate_key, to.certificate_key.c_str());
    auto const code = a.easy_perform(h);
    int socket = -1;
    if (code == 0) (void)a.easy_getinfo(h, info::active_socket, &socket);
    set(option::error_buffer, static_cast<char*>(nullptr));
    if (socket >= 0) return {std::unique_ptr<tls_stream>{new tls_stream{&a, h, socket}}, {}};
    std::string_view const said{words.data()};
    failure why{trouble_of(code), clean_text(said.empty() ? a.easy_strerror(code) : said)};
    a.easy_cleanup(h);
    return {nullptr, std::move(why)};
}

tls_stream::~tls_stream() {
    base::library_use const tls;
    if (tls) api_->easy_cleanup(easy_);
}

std::string tls_stream::certificate() const { return certificate_of(*api_, easy_); }

long tls_stream::send(void const* data, std::size_t size) noexcept {
    std::size_t done = 0;
    base::library_use const tls;
    auto const code = !tls ? gone : api_->easy_send(easy_, data, size, &done);
    if (code == 0) return static_cast<long>(done);
    errno = code == try_later ? EAGAIN : ECONNRESET;
    return -1;
}

long tls_stream::recv(void* data, std::size_t size) noexcept {
    std::size_t done = 0;
    base::library_use const tls;
    auto const code = !tls ? gone : api_->easy_recv(easy_, data, size, &done);
    if (code == 0) return static_cast<long>(done);
    errno = code == try_later ? EAGAIN : ECONNRESET;
    return -1;
}

}  // namespace kiln::remote
