// SPDX-License-Identifier: Apache-2.0
#include "remote/curl.hpp"

#include "base/exit_gate.hpp"
#include "remote/curl_numbers.hpp"
#include "remote/settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace kiln::remote {

using namespace curl;

namespace {

constexpr std::size_t most_headers = std::size_t{64} << 10;
constexpr std::chrono::milliseconds timers_may_wait{2};
constexpr std::size_t most_in_advance = std::size_t{1} << 20;  // room made because a server says so

}  // namespace

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

    void make_room(std::string_view length) {
        std::size_t n = 0;
        if (std::from_chars(length.data(), length.data() + length.size(), n).ec == std::errc{})
            got.body.reserve(std::min({n, what.most, most_in_advance}));
    }
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
        if (name == "content-length" && t.what.method == "GET") t.make_room(value);
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
            if (multi_ == nullptr || base::is_gate_closed()) return ::poll(ours.data(), ours.size(), timeout_ms);
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
    base::library_use const tls;
    if (!tls) return refuse_waiting({trouble::cut, "the program ends"});
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
    close_in_children(a, h);
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
    base::library_use const tls;
    if (multi_ == nullptr || !tls) return;
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
    base::library_use const tls;
    auto running = std::exchange(running_, {});
    for (auto& [handle, t] : running) {
        // What libcurl has of it ends with the process.
        if (!tls) {
            queue_.push_back(std::move(t));
            continue;
        }
        (void)api_->multi_remove_handle(multi_, handle);
        t->words = {};
        finish(std::move(t), 56);
    }
    refuse_waiting({trouble::cut, "closed"});
    auto const last = std::exchange(multi_, nullptr);
    if (last != nullptr && tls) (void)api_->multi_cleanup(last);
    loop_.wait_by({}, {});
}

}  // namespace kiln::remote
