// SPDX-License-Identifier: Apache-2.0
#include "remote/curl.hpp"

#include "base/fork_guard.hpp"
#include "remote/settings.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kiln::remote {

namespace {

namespace option {
constexpr int write_data = 10001, url = 10002, user_password = 10005, read_data = 10009, error_buffer = 10010,
              write_function = 20011, read_function = 20012, http_header = 10023, certificate = 10025,
              header_data = 10029, ssl_version = 32, custom_request = 10036, no_body = 44, upload = 46, netrc = 51,
              follow = 52, verify_peer = 64, ca_file = 10065, most_redirects = 68, header_function = 20079,
              verify_host = 81, http_version = 84, certificate_key = 10087, no_signal = 99, in_file_size = 30115,
              permission_ms = 227, timeout_ms = 155, connect_timeout_ms = 156, protocols = 181,
              redirect_protocols = 182, http09_allowed = 285, connect_only = 141, alpn = 226, aws_sigv4 = 10305,
              ready_function = 20312, low_speed_limit = 19, low_speed_seconds = 20, no_proxy = 10177,
              open_socket = 20163, close_socket = 20208, ready_data = 10313, quick_exit = 322, certificates = 172;
}  // namespace option
namespace info {
constexpr int response_code = 0x200002, active_socket = 0x500000 + 44, certificates = 0x400000 + 34;
}
namespace multi_option {
constexpr int most_connections_per_host = 7;
}
constexpr long only_http = 3;  // http and https
constexpr long only_https = 2;
constexpr long tls_1_2 = 6;
constexpr long http_1_1 = 2;
constexpr long http_2_over_tls = 4;
constexpr int message_done = 1;
constexpr int try_later = 81;
constexpr std::size_t most_headers = std::size_t{64} << 10;
constexpr std::chrono::milliseconds timers_may_wait{2};
constexpr std::size_t error_bytes = 256;

struct loaded_curl {
    curl_api api{};
    std::string why;
};

loaded_curl load() {
    loaded_curl out;
    void* library = nullptr;
    for (auto const* name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"}) {
        library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr) break;
    }
    if (library == nullptr) {
        out.why = "libcurl is not on this machine: install libcurl4";
        return out;
    }
    auto const get = [&](auto& entry, char const* name) {
        entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(::dlsym(library, name));
        if (entry == nullptr && out.why.empty())
            out.why = fmt::format("libcurl has no {}: 7.80 or newer is needed", name);
    };
    int (*global_init)(long) = nullptr;
    get(global_init, "curl_global_init");
    get(out.api.easy_init, "curl_easy_init");
    get(out.api.easy_setopt, "curl_easy_setopt");
    get(out.api.easy_getinfo, "curl_easy_getinfo");
    get(out.api.easy_cleanup, "curl_easy_cleanup");
    get(out.api.easy_perform, "curl_easy_perform");
    get(out.api.easy_send, "curl_easy_send");
    get(out.api.easy_recv, "curl_easy_recv");
    get(out.api.easy_strerror, "curl_easy_strerror");
    get(out.api.slist_append, "curl_slist_append");
    get(out.api.slist_free_all, "curl_slist_free_all");
    get(out.api.multi_init, "curl_multi_init");
    get(out.api.multi_setopt, "curl_multi_setopt");
    get(out.api.multi_add_handle, "curl_multi_add_handle");
    get(out.api.multi_remove_handle, "curl_multi_remove_handle");
    get(out.api.multi_perform, "curl_multi_perform");
    get(out.api.multi_poll, "curl_multi_poll");
    get(out.api.multi_info_read, "curl_multi_info_read");
    get(out.api.multi_cleanup, "curl_multi_cleanup");
    if (out.why.empty()) global_init(3);
    return out;
}

// A child of a fork has no part in its parent's connections: they are closed there at once. As libcurl hands it over:
struct wanted_socket {
    int family, type, protocol;
    unsigned address_bytes;
    ::sockaddr address;
};
int open_socket(void*, int, wanted_socket const* what) noexcept {
    int const fd = ::socket(what->family, what->type | SOCK_CLOEXEC, what->protocol);
    if (fd >= 0) (void)base::close_in_child(fd);
    return fd;
}
int close_socket(void*, int fd) noexcept {
    base::forget_in_child(fd);
    return ::close(fd);
}

// The first of the chain is the server's own.
std::string certificate_of(curl_api const& a, curl_api::handle easy) {
    constexpr std::string_view name = "Cert:";
    curl_api::certificates* all = nullptr;
    if (a.easy_getinfo(easy, info::certificates, &all) != 0 || all == nullptr || all->count < 1) return {};
    for (auto const* line = all->each[0]; line != nullptr; line = line->next) {
        std::string_view const text{line->data};
        if (text.starts_with(name)) return std::string{text.substr(name.size())};
    }
    return {};
}

trouble trouble_of(int code) noexcept {
    constexpr std::array tls{35, 51, 53, 54, 58, 59, 60, 64, 66, 77, 80, 82, 83, 90, 91, 98};
    if (std::ranges::find(tls, code) != tls.end()) return trouble::tls;
    switch (code) {
        case 5:
        case 6:
        case 7: return trouble::connect;
        case 28: return trouble::timeout;
        case 18:
        case 52:
        case 55:
        case 56: return trouble::cut;
        default: return trouble::protocol;
    }
}

}  // namespace

result<curl_api const*> load_curl() {
    // fork() waits for this lock. It would not wait for a static that is being made, and the child would for ever. Never destroyed.
    static auto& mutex = *new base::forkable_mutex;
    static loaded_curl const* it = nullptr;
    std::lock_guard const lock{mutex};
    if (it == nullptr) it = new loaded_curl{load()};
    if (!it->why.empty()) return fail(errc::not_found, "{}", it->why);
    return &it->api;
}

tls_stream::attempt tls_stream::connect(peer const& to) {
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
    set(option::open_socket, &open_socket);
    set(option::close_socket, &close_socket);
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

tls_stream::~tls_stream() { api_->easy_cleanup(easy_); }

std::string tls_stream::certificate() const { return certificate_of(*api_, easy_); }

long tls_stream::send(void const* data, std::size_t size) noexcept {
    std::size_t done = 0;
    auto const code = api_->easy_send(easy_, data, size, &done);
    if (code == 0) return static_cast<long>(done);
    errno = code == try_later ? EAGAIN : ECONNRESET;
    return -1;
}

long tls_stream::recv(void* data, std::size_t size) noexcept {
    std::size_t done = 0;
    auto const code = api_->easy_recv(easy_, data, size, &done);
    if (code == 0) return static_cast<long>(done);
    errno = code == try_later ? EAGAIN : ECONNRESET;
    return -1;
}

std::string http_response::header(std::string_view name) const {
    for (auto const& [key, value] : headers) {
        if (key == name) return value;
    }
    return {};
}

struct curl_client::transfer {
    curl_client& of;
    http_request what;
    answered then;
    http_response got{};
    std::size_t sent = 0;
    std::size_t header_bytes = 0;
    bool too_large = false;
    bool connected = false;
    curl_api::handle easy = nullptr;
    curl_api::list* headers = nullptr;
    std::array<char, error_bytes> words{};
};

curl_client::curl_client(reactor& loop, curl_options options, byte_server::traffic& counted)
    : loop_{loop}, options_{std::move(options)}, counted_{counted} {}

curl_client::~curl_client() { close(); }

std::size_t curl_client::on_body(char* data, std::size_t, std::size_t count, void* to) noexcept {
    auto& t = *static_cast<transfer*>(to);
    t.too_large = t.got.body.size() + count > t.what.most;
    if (t.too_large) return 0;
    try {
        auto const raw = base::as_bytes({data, count});
        t.got.body.insert(t.got.body.end(), raw.begin(), raw.end());
    } catch (std::bad_alloc const&) {
        return 0;
    }
    t.of.counted_.in += count;
    return count;
}

std::size_t curl_client::on_header(char* data, std::size_t, std::size_t count, void* to) noexcept {
    auto& t = *static_cast<transfer*>(to);
    t.header_bytes += count;
    if (t.header_bytes > most_headers) return 0;
    std::string_view line{data, count};
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    auto const colon = line.find(':');
    if (colon == line.npos) return count;
    try {
        std::string name{line.substr(0, colon)};
        for (auto& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
        auto value = line.substr(colon + 1);
        while (value.starts_with(' ')) value.remove_prefix(1);
        t.got.headers.emplace_back(std::move(name), value);
    } catch (std::bad_alloc const&) {
        return 0;
    }
    return count;
}

std::size_t curl_client::on_read(char* to, std::size_t size, std::size_t count, void* from) noexcept {
    auto& t = *static_cast<transfer*>(from);
    auto const n = std::min(size * count, t.what.body->size() - t.sent);
    std::memcpy(to, t.what.body->data() + t.sent, n);
    t.sent += n;
    t.of.counted_.out += n;
    return n;
}

// A connection is there, new or kept, and the request is about to go.
int curl_client::on_ready(void* of, char*, char*, int, int) noexcept {
    auto& t = *static_cast<transfer*>(of);
    if (!std::exchange(t.connected, true) && t.of.on_connected) t.of.on_connected();
    return 0;
}

bool curl_client::open() {
    if (multi_ != nullptr) return true;
    auto const loaded = load_curl();
    if (!loaded) {
        no_api_ = loaded.error().message();
        return false;
    }
    api_ = *loaded;
    multi_ = api_->multi_init();
    if (multi_ == nullptr) return false;
    api_->multi_setopt(multi_, multi_option::most_connections_per_host, static_cast<long>(options_.at_once));
    loop_.wait_by(
        [this](std::vector<::pollfd>& ours, int timeout_ms) {
            if (multi_ == nullptr) return ::poll(ours.data(), ours.size(), timeout_ms);
            std::vector<curl_api::wait_fd> all;
            for (auto const& p : ours) {
                short const wanted =
                    static_cast<short>(((p.events & POLLIN) != 0 ? 1 : 0) | ((p.events & POLLOUT) != 0 ? 4 : 0));
                all.push_back({p.fd, wanted, 0});
            }
            int ready = 0;
            auto const pause = timeout_ms < 0 ? 60'000 : timeout_ms;
            (void)api_->multi_poll(multi_, all.data(), static_cast<unsigned>(all.size()), pause, &ready);
            int ours_ready = 0;
            for (std::size_t i = 0; i < ours.size(); ++i) {
                auto const seen = all[i].revents;
                ours[i].revents = static_cast<short>(((seen & 1) != 0 ? POLLIN : 0) | ((seen & 4) != 0 ? POLLOUT : 0));
                ours_ready += seen != 0 ? 1 : 0;
            }
            only_ours_ = ours_ready > 0 && ours_ready == ready;
            return ready;
        },
        [this] {
            // Woken for somebody else, libcurl has nothing to do but its timers, which are not that exact.
            auto const now = base::clock::now();
            if (std::exchange(only_ours_, false) && now - performed_ < timers_may_wait) return;
            collect();
        });
    return true;
}

void curl_client::send(http_request what, answered then) {
    queue_.push_back(
        std::unique_ptr<transfer>(new transfer{.of = *this, .what = std::move(what), .then = std::move(then)}));
    counted_.requests += 1;
    loop_.cancel(idle_timer_);
    if (start_timer_ == 0) start_timer_ = loop_.at(base::clock::now(), [this] { start_some(); });
}

void curl_client::start_some() {
    start_timer_ = 0;
    if (!open()) return refuse_waiting({trouble::library, no_api_});
    while (!queue_.empty() && running_.size() < options_.at_once) {
        auto next = std::move(queue_.front());
        queue_.pop_front();
        if (!next->what.refused) {
            start(std::move(next));
            continue;
        }
        http_response none;
        none.why = std::move(next->what.refused);
        next->then(std::move(none));
    }
    if (perform() == running_.size() || ended_timer_ != 0) return;
    // What ended just now is no reason for anybody to wake.
    ended_timer_ = loop_.at(base::clock::now(), [this] {
        ended_timer_ = 0;
        collect();
    });
}

std::size_t curl_client::perform() {
    int left = 0;
    (void)api_->multi_perform(multi_, &left);
    performed_ = base::clock::now();
    return static_cast<std::size_t>(std::max(0, left));
}

void curl_client::start(std::unique_ptr<transfer> t) {
    auto const& a = *api_;
    auto* const h = t->easy = a.easy_init();
    auto const set = [&](int which, auto value) { (void)a.easy_setopt(h, which, value); };
    set(option::url, t->what.url.c_str());
    set(option::protocols, only_http);
    set(option::redirect_protocols, only_https);
    set(option::follow, t->what.follow ? 1L : 0L);
    set(option::most_redirects, 4L);
    set(option::no_signal, 1L);
    set(option::quick_exit, 1L);  // a resolver that hangs is left behind, not waited for
    set(option::netrc, 0L);
    set(option::open_socket, &open_socket);
    set(option::close_socket, &close_socket);
    // What is for this machine goes to no proxy of the environment, and with it no token in clear text.
    if (auto const to = parse_url(t->what.url.substr(0, t->what.url.find_first_of("?#")));
        to && is_this_machine(to->host))
        set(option::no_proxy, "*");
    set(option::http09_allowed, 0L);
    set(option::http_version, t->what.url.starts_with("https") ? http_2_over_tls : http_1_1);
    set(option::ssl_version, tls_1_2);
    set(option::verify_peer, 1L);
    set(option::verify_host, 2L);
    set(option::connect_timeout_ms, static_cast<long>(options_.connect_timeout.count()));
    set(option::timeout_ms, static_cast<long>(options_.timeout.count()));
    if (options_.stall.count() > 0) {
        set(option::low_speed_limit, 1000L);
        set(option::low_speed_seconds, static_cast<long>(options_.stall.count()));
    }
    set(option::error_buffer, t->words.data());
    set(option::write_function, &curl_client::on_body);
    set(option::write_data, static_cast<void*>(t.get()));
    set(option::header_function, &curl_client::on_header);
    set(option::header_data, static_cast<void*>(t.get()));
    set(option::ready_function, &curl_client::on_ready);
    set(option::ready_data, static_cast<void*>(t.get()));
    if (!options_.ca.empty()) set(option::ca_file, options_.ca.c_str());
    if (!options_.certificate.empty()) set(option::certificate, options_.certificate.c_str());
    if (!options_.certificate_key.empty()) set(option::certificate_key, options_.certificate_key.c_str());
    if (!options_.aws.empty()) {
        set(option::aws_sigv4, options_.aws.c_str());
        set(option::user_password, options_.user.c_str());
    }
    if (t->what.tells_certificate) set(option::certificates, 1L);
    if (t->what.method == "HEAD") set(option::no_body, 1L);
    else if (t->what.method != "GET") set(option::custom_request, t->what.method.c_str());
    if (t->what.body) {
        set(option::upload, 1L);
        set(option::read_function, &curl_client::on_read);
        set(option::read_data, static_cast<void*>(t.get()));
        set(option::in_file_size, static_cast<long long>(t->what.body->size()));
        // Nobody here waits for a permission to go on. Where requests are signed libcurl would sign the empty line too.
        if (options_.aws.empty()) t->headers = a.slist_append(t->headers, "Expect:");
        else set(option::permission_ms, 1L);
    }
    for (auto const& line : t->what.headers) t->headers = a.slist_append(t->headers, line.c_str());
    if (t->headers != nullptr) set(option::http_header, static_cast<void*>(t->headers));
    if (a.multi_add_handle(multi_, h) != 0) return finish(std::move(t), 2);
    running_.emplace(h, std::move(t));
}

void curl_client::collect() {
    if (multi_ == nullptr) return;
    (void)perform();
    int left = 0;
    std::vector<std::pair<curl_api::handle, int>> done;
    for (auto const* m = api_->multi_info_read(multi_, &left); m != nullptr; m = api_->multi_info_read(multi_, &left)) {
        if (m->what == message_done) done.emplace_back(m->easy, m->data.result);
    }
    struct ended {
        std::unique_ptr<transfer> what;
        int code;
    };
    std::vector<ended> all;
    failure nobody;
    for (auto const& [handle, code] : done) {
        auto node = running_.extract(handle);
        if (node.empty()) continue;
        (void)api_->multi_remove_handle(multi_, handle);
        if (code != 0 && !node.mapped()->connected) nobody = failure_of(*node.mapped(), code);
        all.push_back({std::move(node.mapped()), code});
    }
    // No connection can be had: that is the answer for all who wait for one, who would each find out for themselves and in their turn.
    auto const in_vain = nobody && !has_connection() ? std::exchange(queue_, {}) : transfers{};
    for (auto& one : all) finish(std::move(one.what), one.code);
    refuse(in_vain, nobody);
    if (all.empty()) return;
    if (!queue_.empty() && start_timer_ == 0) start_some();
    if (running_.empty() && queue_.empty()) arm_idle();
}

bool curl_client::has_connection() const noexcept {
    return std::ranges::any_of(running_, [](auto const& r) { return r.second->connected; });
}

failure curl_client::failure_of(transfer const& t, int code) const {
    if (t.too_large) return {trouble::too_large, "more than max-entry"};
    if (code == 0) return {};
    std::string_view const words{t.words.data()};
    return {trouble_of(code), clean_text(words.empty() ? api_->easy_strerror(code) : words)};
}

void curl_client::refuse(transfers const& some, failure const& why) {
    for (auto const& t : some) {
        http_response none;
        none.why = why;
        t->then(std::move(none));
    }
}

void curl_client::refuse_waiting(failure const& why) { refuse(std::exchange(queue_, {}), why); }

void curl_client::finish(std::unique_ptr<transfer> t, int code) {
    t->got.why = failure_of(*t, code);
    (void)api_->easy_getinfo(t->easy, info::response_code, &t->got.status);
    if (t->what.tells_certificate) t->got.certificate = certificate_of(*api_, t->easy);
    if (t->headers != nullptr) api_->slist_free_all(t->headers);
    if (t->easy != nullptr) api_->easy_cleanup(t->easy);
    auto const then = std::move(t->then);
    auto got = std::move(t->got);
    t.reset();
    then(std::move(got));
}

void curl_client::arm_idle() {
    loop_.cancel(idle_timer_);
    idle_timer_ = loop_.at(base::clock::now() + options_.idle, [this] {
        idle_timer_ = 0;
        // Its kept connections go with it.
        if (running_.empty() && queue_.empty()) close();
    });
}

void curl_client::close() noexcept {
    loop_.cancel(start_timer_);
    loop_.cancel(idle_timer_);
    loop_.cancel(ended_timer_);
    auto running = std::exchange(running_, {});
    for (auto& [handle, t] : running) {
        (void)api_->multi_remove_handle(multi_, handle);
        t->words = {};
        finish(std::move(t), 56);
    }
    refuse_waiting({trouble::cut, "closed"});
    if (multi_ != nullptr) (void)api_->multi_cleanup(std::exchange(multi_, nullptr));
    loop_.wait_by({}, {});
}

}  // namespace kiln::remote
