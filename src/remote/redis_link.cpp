// SPDX-License-Identifier: Apache-2.0
#include "remote/redis_link.hpp"

#include "base/fork_guard.hpp"
#include "base/quiet_thread.hpp"
#include "base/standard_streams.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

namespace kiln::remote {

namespace {

constexpr std::size_t read_bytes = std::size_t{64} << 10;
constexpr std::chrono::milliseconds next_address_after{100};

struct addresses {
    std::vector<::sockaddr_storage> found;
    std::string why;
};

// Blocks as long as the resolver likes: on a thread of its own.
addresses look_up_host(std::string const& host, std::uint16_t port) {
    ::addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    ::addrinfo* list = nullptr;
    auto const number = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
    addresses out;
    if (number != 0) out.why = ::gai_strerror(number);
    for (auto const* a = list; number == 0 && a != nullptr; a = a->ai_next) {
        if (a->ai_addrlen > sizeof(::sockaddr_storage)) continue;
        std::memcpy(&out.found.emplace_back(), a->ai_addr, a->ai_addrlen);
    }
    if (list != nullptr) ::freeaddrinfo(list);
    return out;
}

::socklen_t length_of(::sockaddr_storage const& a) noexcept {
    return a.ss_family == AF_INET    ? sizeof(::sockaddr_in)
           : a.ss_family == AF_INET6 ? sizeof(::sockaddr_in6)
                                     : sizeof(::sockaddr_un);
}

std::optional<::sockaddr_storage> socket_file(std::string const& path) {
    ::sockaddr_un a{};
    a.sun_family = AF_UNIX;
    if (path.size() >= sizeof a.sun_path) return std::nullopt;
    std::memcpy(a.sun_path, path.data(), path.size());
    ::sockaddr_storage out{};
    std::memcpy(&out, &a, sizeof a);
    return out;
}

std::string words_of(int number) { return std::string{std::strerror(number)}; }

// What a server says to AUTH in words of ours: some repeat what they do not understand, and that was a password.
std::string refusal_of(std::string_view said) {
    if (said.find("without any password") != said.npos || said.find("no password is set") != said.npos)
        return "it knows no password: leave out the token";
    for (std::string_view const word : {"WRONGPASS", "NOAUTH", "NOPERM", "LOADING"}) {
        if (said.starts_with(word)) return fmt::format("{} to AUTH", word);
    }
    if (said.find("invalid password") != said.npos) return "the password is wrong";
    return "it does not understand AUTH";
}

}  // namespace

redis_link::~redis_link() {
    close();
    std::lock_guard const lock{back_->mutex};
    back_->to = nullptr;
}

void redis_link::send(std::vector<std::string_view> const& words, answered then) {
    waiting w{.bytes = {}, .then = std::move(then)};
    resp::put_command(w.bytes, words);
    counted_.requests += 1;
    if (phase_ == phase::ready || phase_ == phase::greeting) out_ += w.bytes;
    bool const first = waiting_.empty();
    waiting_.push_back(std::move(w));
    loop_.cancel(idle_timer_);
    if (phase_ == phase::closed) return open_soon();
    if (first) arm_timeout();
    if (phase_ == phase::ready) flush();
}

// Not at once: nobody is answered before he has finished asking.
void redis_link::open_soon() {
    if (open_timer_ != 0) return;
    open_timer_ = loop_.at(base::clock::now(), [this] {
        open_timer_ = 0;
        if (phase_ == phase::closed) open();
    });
}

void redis_link::open() {
    phase_ = phase::resolving;
    auto const why_not = failure{trouble::connect, "no answer to the connection"};
    connect_timer_ = loop_.at(base::clock::now() + options_.connect_timeout, [this, why_not] { drop(why_not); });
    if (options_.at.by == scheme::redis_tls) return open_tls();
    if (options_.at.by == scheme::redis_unix) {
        auto const file = socket_file(options_.at.path);
        return resolved(file ? std::vector{*file} : std::vector<::sockaddr_storage>{}, "the path is too long");
    }
    // An address written as numbers needs no resolver, and thus no thread.
    ::sockaddr_in four{};
    if (::inet_aton(options_.at.host.c_str(), &four.sin_addr) == 1) {
        four.sin_family = AF_INET;
        four.sin_port = htons(options_.at.port);
        ::sockaddr_storage a{};
        std::memcpy(&a, &four, sizeof four);
        return resolved({a}, {});
    }
    auto thread = base::start_quiet_thread([back = back_, host = options_.at.host, port = options_.at.port] {
        auto found = look_up_host(host, port);
        std::lock_guard const lock{back->mutex};
        if (back->to == nullptr) return;
        (void)back->to->loop_.post([back, found = std::move(found)] {
            auto* const link = back->to;  // changes on this thread only
            if (link != nullptr && link->phase_ == phase::resolving) link->resolved(found.found, found.why);
        });
    });
    if (!thread) return drop({trouble::connect, "no thread to resolve the name"});
    thread->detach();
}

// libcurl blocks until hands are shaken: on a thread of its own, as resolving a name does.
void redis_link::open_tls() {
    tls_stream::peer to{.host = options_.at.host,
                        .port = options_.at.port,
                        .timeout = options_.connect_timeout,
                        .ca = options_.ca,
                        .certificate = options_.certificate,
                        .certificate_key = options_.certificate_key};
    auto thread = base::start_quiet_thread([back = back_, to = std::move(to)] {
        auto [stream, why] = tls_stream::connect(to);
        std::lock_guard const lock{back->mutex};
        if (back->to == nullptr) return;
        (void)back->to->loop_.post([back, stream = std::shared_ptr{std::move(stream)}, why = std::move(why)] {
            auto* const link = back->to;
            if (link == nullptr || link->phase_ != phase::resolving) return;
            if (why) return link->drop(why);
            link->tls_ = stream;
            link->connected();
        });
    });
    if (!thread) return drop({trouble::connect, "no thread to connect"});
    thread->detach();
}

long redis_link::send_some(void const* data, std::size_t size) noexcept {
    return tls_ ? tls_->send(data, size) : ::send(socket_.get(), data, size, MSG_NOSIGNAL);
}

long redis_link::receive_some(void* data, std::size_t size) noexcept {
    return tls_ ? tls_->recv(data, size) : ::recv(socket_.get(), data, size, 0);
}

void redis_link::resolved(std::vector<::sockaddr_storage> found, std::string const& why) {
    if (found.empty()) return drop({trouble::connect, "the name is not resolved: " + why});
    addresses_ = std::move(found);
    next_address_ = 0;
    no_address_ = "no address";
    try_next();
}

// The next address when the one before has failed, or has said nothing for a while, which it still may.
void redis_link::try_next() {
    loop_.cancel(next_timer_);
    while (next_address_ < addresses_.size()) {
        auto const& a = addresses_[next_address_++];
        base::file_descriptor s{base::above_standard_streams(
            [&] { return ::socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); })};
        if (!s) {
            no_address_ = words_of(errno);
            continue;
        }
        (void)base::close_in_child(s.get());
        int const one = 1;
        if (a.ss_family != AF_UNIX) (void)::setsockopt(s.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        phase_ = phase::connecting;
        if (::connect(s.get(), reinterpret_cast<::sockaddr const*>(&a), length_of(a)) == 0)
            return connected_by(std::move(s));
        if (errno == EINPROGRESS) {
            loop_.watch(s.get(), POLLOUT, [this, fd = s.get()](short) { attempted(fd); });
            attempts_.push_back(std::move(s));
            if (next_address_ < addresses_.size())
                next_timer_ = loop_.at(base::clock::now() + next_address_after, [this] { try_next(); });
            return;
        }
        no_address_ = words_of(errno);
        base::forget_in_child(s.get());
    }
    if (attempts_.empty()) drop({trouble::connect, no_address_});
}

void redis_link::attempted(int fd) {
    auto const at = std::ranges::find(attempts_, fd, &base::file_descriptor::get);
    auto socket = std::move(*at);
    attempts_.erase(at);
    loop_.unwatch(fd);
    int number = 0;
    ::socklen_t size = sizeof number;
    (void)::getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &size);
    if (number == 0) return connected_by(std::move(socket));
    no_address_ = words_of(number);
    base::forget_in_child(fd);
    socket.reset();
    try_next();
}

void redis_link::connected_by(base::file_descriptor socket) {
    leave_attempts();
    socket_ = std::move(socket);
    connected();
}

void redis_link::leave_attempts() noexcept {
    loop_.cancel(next_timer_);
    for (auto const& s : attempts_) {
        loop_.unwatch(s.get());
        base::forget_in_child(s.get());
    }
    attempts_.clear();
}

void redis_link::connected() {
    loop_.cancel(connect_timer_);
    counted_.connections += 1;
    used_ = false;
    decoder_ = resp::decoder{options_.limits};
    if (on_connected) on_connected();
    greet();
}

// Who we are, before everything that waits.
void redis_link::greet() {
    auto const token = options_.token ? options_.token->read() : result<std::string>{std::string{}};
    if (!token) return drop({trouble::denied, std::string{token.error().message()}});
    out_.clear();
    sent_ = 0;
    greetings_ = 0;
    if (!token->empty()) {
        auto const colon = token->find(':');
        std::string_view const all{*token};
        if (colon == all.npos) resp::put_command(out_, {"AUTH", all});
        else resp::put_command(out_, {"AUTH", all.substr(0, colon), all.substr(colon + 1)});
        ++greetings_;
    }
    names_us_ = greetings_ > 0;
    if (options_.at.by != scheme::redis_unix && options_.at.path.size() > 1) {
        resp::put_command(out_, {"SELECT", std::string_view{options_.at.path}.substr(1)});
        ++greetings_;
    }
    phase_ = phase::ready;
    for (auto const& w : waiting_) out_ += w.bytes;
    if (!waiting_.empty()) arm_timeout();
    flush();
}

void redis_link::flush() {
    while (sent_ < out_.size()) {
        auto const n = send_some(out_.data() + sent_, out_.size() - sent_);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) return lost({trouble::cut, words_of(errno)});
        sent_ += static_cast<std::size_t>(n);
        counted_.out += static_cast<std::uint64_t>(n);
    }
    if (sent_ == out_.size()) {
        out_.clear();
        sent_ = 0;
    }
    watch();
}

void redis_link::watch() {
    short const events = static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT);
    loop_.watch(descriptor(), events, [this](short seen) { on_events(seen); });
}

void redis_link::on_events(short events) {
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) readable();
    if (phase_ == phase::ready && (events & POLLOUT) != 0 && !out_.empty()) flush();
}

void redis_link::readable() {
    std::array<std::byte, read_bytes> some;
    // What TLS holds back already no poll would tell of: there it is read until there is no more.
    for (int round = 0; tls_ || round < 16; ++round) {
        auto const n = receive_some(some.data(), some.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) return lost({trouble::cut, words_of(errno)});
        if (n == 0) return lost({trouble::cut, "the server closed the connection"});
        counted_.in += static_cast<std::uint64_t>(n);
        decoder_.feed(base::byte_span{some}.first(static_cast<std::size_t>(n)));
        for (;;) {
            auto next = decoder_.next();
            if (!next) {
                if (next.error().code() == errc::out_of_memory)
                    return refuse_first({trouble::too_large, std::string{next.error().message()}});
                return drop({trouble::protocol, std::string{next.error().message()}});
            }
            if (!*next) break;
            answer(**std::move(next));
            if (phase_ != phase::ready) return;
        }
        if (!tls_ && static_cast<std::size_t>(n) < some.size()) return;
    }
}

void redis_link::answer(resp::value v) {
    if (greetings_ > 0) {
        --greetings_;
        bool const to_auth = std::exchange(names_us_, false);
        bool const denied = to_auth || v.text().starts_with("NOAUTH") || v.text().starts_with("NOPERM");
        if (v.is_error())
            drop({denied ? trouble::denied : trouble::server, to_auth ? refusal_of(v.text()) : clean_text(v.text())});
        return;
    }
    // Not by a greeting: who greets and hangs up would be greeted for ever.
    used_ = true;
    retried_ = false;
    if (waiting_.empty()) {
        // "-ERR max number of clients reached" comes unasked, and then the end.
        bool const refusal = v.is_error();
        return drop({refusal ? trouble::server : trouble::protocol, clean_text(v.text())});
    }
    auto const w = std::move(waiting_.front());
    waiting_.pop_front();
    if (waiting_.empty()) {
        loop_.cancel(timeout_timer_);
        arm_idle();
    } else arm_timeout();
    w.then({.value = std::move(v)});
}

void redis_link::arm_timeout() {
    loop_.cancel(timeout_timer_);
    timeout_timer_ = loop_.at(base::clock::now() + options_.timeout, [this] {
        timeout_timer_ = 0;
        drop({trouble::timeout, "no answer"});
    });
}

void redis_link::arm_idle() {
    loop_.cancel(idle_timer_);
    idle_timer_ = loop_.at(base::clock::now() + options_.idle, [this] {
        idle_timer_ = 0;
        if (waiting_.empty()) shut();
    });
}

// A kept connection may have died while nobody looked: what was sent last is sent once more.
void redis_link::lost(failure why) {
    bool const again = used_ && !retried_ && !waiting_.empty();
    if (!again) return drop(std::move(why));
    shut();
    retried_ = true;
    open();
}

void redis_link::refuse_first(failure why) {
    if (greetings_ > 0 || waiting_.empty()) return drop(std::move(why));
    shut();
    auto const w = std::move(waiting_.front());
    waiting_.pop_front();
    w.then({.value = {}, .why = std::move(why)});
    if (!waiting_.empty() && phase_ == phase::closed) open_soon();
}

void redis_link::drop(failure why) {
    shut();
    fail_all(std::move(why));
}

void redis_link::fail_all(failure why) {
    auto const some = std::exchange(waiting_, {});
    for (auto const& w : some) w.then({.value = {}, .why = why});
}

void redis_link::shut() noexcept {
    for (auto* const t : {&connect_timer_, &timeout_timer_, &idle_timer_, &open_timer_}) loop_.cancel(*t);
    if (tls_) {
        loop_.unwatch(tls_->socket());
        tls_.reset();
    }
    leave_attempts();
    if (socket_) {
        loop_.unwatch(socket_.get());
        base::forget_in_child(socket_.get());
        socket_.reset();
    }
    out_.clear();
    sent_ = 0;
    greetings_ = 0;
    phase_ = phase::closed;
}

void redis_link::close() noexcept { drop({trouble::cut, "closed"}); }

}  // namespace kiln::remote
