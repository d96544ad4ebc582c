// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_tier.hpp"

#include "base/exit_gate.hpp"
#include "remote/http_server.hpp"
#include "remote/redis_server.hpp"
#include "remote/rules.hpp"

#include <condition_variable>

namespace kiln::remote {

namespace {

// What it does itself takes milliseconds. It may be inside a library that reads a certificate, or a token, from a disk that hangs.
constexpr std::chrono::milliseconds until_it_is_held_up{500};
// As long as the end of a program waits for who is inside OpenSSL or libcurl.
constexpr std::chrono::milliseconds patience_with_its_thread{2000};
constexpr std::string_view held_up = "its thread is held up: a file that it needs may lie on a disk that hangs";

// What a thread that waits and the reactor's thread share.
template <class T>
struct rendezvous {
    std::mutex mutex;
    std::condition_variable there;
    std::optional<T> value;

    void put(T v) {
        {
            std::lock_guard const lock{mutex};
            value = std::move(v);
        }
        there.notify_all();
    }
    [[nodiscard]] std::optional<T> wait(base::time_point until) {
        std::unique_lock lock{mutex};
        (void)there.wait_until(lock, until, [&] { return value.has_value(); });
        return std::move(value);
    }
};

}  // namespace

servers make_servers(reactor& loop, remote_options const& options) {
    servers out;
    if (options.at.is_redis()) out.bytes = std::make_unique<redis_server>(loop, options);
    else out.bytes = make_http_server(loop, options);
    if (options.leases == leasing::by_the_server) out.leases = out.bytes->leases();
    if (options.leases == leasing::elsewhere) {
        out.lease_keeper = std::make_unique<redis_server>(loop, options, redis_server::duty::leases);
        out.leases = out.lease_keeper->leases();
    }
    return out;
}

namespace {

// How a claim reaches the client it is of, which may be gone first.
struct way_in {
    std::mutex mutex;
    reactor* loop = nullptr;
    client* asks = nullptr;
};

class held_claim final : public store::claim {
public:
    held_claim(std::shared_ptr<way_in> to, digest const& request, std::string token)
        : to_{std::move(to)}, request_{request}, token_{std::move(token)} {}
    ~held_claim() override {
        post([request = request_, token = token_](client& c) { c.let_go(request, token); });
    }
    void made(std::chrono::nanoseconds took) noexcept override {
        post([request = request_, token = token_, took](client& c) { c.made(request, token, took); });
    }
    void cannot_publish(std::string_view why) noexcept override {
        post([request = request_, token = token_, reason = std::string{why}](client& c) {
            c.cannot_publish(request, token, reason);
        });
    }

private:
    template <class What>
    void post(What what) noexcept {
        // A child ends no lease of its parent.
        if (base::fork_generation() != generation_) return;
        try {
            std::lock_guard const lock{to_->mutex};
            if (auto* const c = to_->asks) (void)to_->loop->post([c, what = std::move(what)] { what(*c); });
        } catch (std::exception const&) {  // no memory: the lease expires
        }
    }
    std::shared_ptr<way_in> to_;
    digest request_;
    std::string token_;
    std::uint64_t generation_ = base::fork_generation();
};

}  // namespace

// Everything of one process: after fork() the child leaves its parent's alone and makes its own.
struct remote_tier::state {
    explicit state(std::shared_ptr<common> of)
        : known{std::move(of)},
          made_of{make_servers(loop, known->rules->options)},
          asks{{.rules = *known->rules,
                .loop = loop,
                .guard = known->guard.get(),
                .counts = known->counts,
                .refused = known->refused,
                .events = *known->events,
                .bytes = *made_of.bytes,
                .leases = made_of.leases,
                .aside = aside}} {
        way->loop = &loop;
        way->asks = &asks;
        asks.make_claim = [way = way](digest const& request, std::string const& token) -> store::claim_ptr {
            return std::make_shared<held_claim>(way, request, token);
        };
        asks.may_give = [this](digest const& key, digest const& payload) { return known->may_give(key, payload); };
    }
    ~state() {
        cut_off();
        (void)loop.stop([this] { close(); });
    }
    // False: its thread is held up by what does not return, and all of this must be left to it.
    [[nodiscard]] bool end_until(base::time_point deadline) {
        cut_off();
        return loop.stop([this] { close(); }, deadline);
    }
    void cut_off() {
        std::lock_guard const lock{way->mutex};
        way->asks = nullptr;
    }
    void close() {
        asks.may_give = {};
        asks.end_all();
        made_of.bytes->close();
        if (made_of.lease_keeper) made_of.lease_keeper->close();
    }
    void leave() {
        cut_off();
        close();
        loop.end_after_this();
    }

    std::shared_ptr<common> const known;
    std::uint64_t generation = base::fork_generation();
    reactor loop;
    check_threads aside{loop};
    servers made_of;
    client asks;
    std::shared_ptr<way_in> way = std::make_shared<way_in>();
};

remote_tier::remote_tier(remote_options options, std::shared_ptr<store::event_outlet> events, put_rule rule)
    : options_{std::move(options)}, rule_{rule} {
    common_->events = std::move(events);
    base::close_gate_at_exit();
}

remote_tier::~remote_tier() {
    std::shared_ptr<state> last;
    {
        std::lock_guard const lock{mutex_};
        last = std::exchange(state_, nullptr);
    }
    if (!last) return;
    bool const parents = last->generation != base::fork_generation();
    // An answer was the last to know of the store: this is the reactor's own thread.
    bool const here = !parents && last->loop.runs_here();
    if (here) last->leave();
    bool const is_left = !parents && !here && !last->end_until(base::clock::now() + patience_with_its_thread);
    if (is_left) common_->events->close();
    if (parents || here || is_left) new std::shared_ptr<state>{std::move(last)};
}

store::tier_traits remote_tier::traits() const noexcept {
    return {.where = store::location::fleet,
            .writable = options_.writes == writing::allowed,
            .persistent = true,
            .headers_sealed = false,
            .any_compiler = false,
            .on_hit = store::fill::machine,
            .lists_families = false,
            .answers_later = true};
}

client_rules const* remote_tier::rules() {
    auto& rules = common_->rules;
    {
        std::lock_guard const lock{mutex_};
        if (keys_read_) return rules ? &*rules : nullptr;
    }
    auto made = make_rules(options_, rule_);
    std::string why;
    {
        std::lock_guard const lock{mutex_};
        if (keys_read_) return rules ? &*rules : nullptr;
        keys_read_ = true;
        if (made) {
            rules = *std::move(made);
            return &*rules;
        }
        why = off_ = made.error().message();
    }
    common_->events->emit({.kind = event_kind::warned,
                           .reason = "fleet-off",
                           .detail = fmt::format("{} is not used: {}", options_.at.text(), why)});
    return nullptr;
}

std::string remote_tier::trouble_with_keys() {
    (void)rules();
    std::lock_guard const lock{mutex_};
    return off_;
}

std::shared_ptr<remote_tier::state> remote_tier::current() {
    if (rules() == nullptr) return nullptr;
    base::no_fork_meanwhile const whole;  // what is made has mutexes of its own
    std::lock_guard const lock{mutex_};
    if (state_ && state_->generation == base::fork_generation()) return state_;
    // The parent's thread is not here, and its sockets are closed: left alone for ever, not destroyed.
    if (state_) new std::shared_ptr<state>{std::move(state_)};
    state_ = std::make_shared<state>(common_);
    return state_;
}

std::shared_ptr<remote_tier::state> remote_tier::state_here() const noexcept {
    std::lock_guard const lock{mutex_};
    return state_ && state_->generation == base::fork_generation() ? state_ : nullptr;
}

std::string_view remote_tier::why_in_vain() const noexcept {
    if (is_held_up(store::urgency::somebody_waits)) return held_up;
    auto const* const known = common_->guard.peek();
    if (known == nullptr) return {};
    return known->is_out_of_reach() || known->is_silent() ? "it does not answer" : std::string_view{};
}

bool remote_tier::is_held_up(store::urgency how) const noexcept {
    auto const s = state_here();
    bool const must = how == store::urgency::nothing_else_will_do;
    return s && s->loop.held_up_for() >= (must ? options_.timeout : until_it_is_held_up);
}

void remote_tier::ask(store::question const& what, store::answered then) {
    bool const must = what.how == store::urgency::nothing_else_will_do;
    auto& guard = common_->guard.get();
    if (guard.is_out_of_reach() && !must) {
        if (guard.may_try()) {
            if (auto const s = current()) (void)s->loop.post([raw = s.get()] { raw->asks.try_again(); });
        }
        return then({.hit = {}, .why = miss::disabled, .detail = "the server does not answer"});
    }
    if (is_held_up(what.how)) return then({.hit = {}, .why = miss::disabled, .detail = std::string{held_up}});
    auto const s = current();
    if (!s) return then({.hit = {}, .why = miss::disabled, .detail = trouble_with_keys()});
    auto asked = std::make_shared<std::pair<store::question, store::answered>>(what, std::move(then));
    if (s->loop.post([raw = s.get(), asked] { raw->asks.ask(asked->first, std::move(asked->second)); })) return;
    asked->second({.hit = {}, .why = miss::disabled, .detail = "no thread is left"});
}

store::answer remote_tier::ask_sync(store::question const& what) {
    auto const meet = std::make_shared<rendezvous<store::answer>>();
    ask(what, [meet](store::answer a) {
        if (a.is_last) meet->put(std::move(a));
    });
    auto out = meet->wait(base::clock::now() + options_.connect_timeout + options_.timeout + std::chrono::seconds{1});
    if (!out) return {.hit = {}, .why = miss::disabled, .detail = "no answer in time"};
    return *std::move(out);
}

bool remote_tier::common::may_give(digest const& key, digest const& payload) {
    bool is_condemned = false;
    {
        std::lock_guard const lock{mutex};
        is_condemned = condemned.erase(key) > 0;
        if (!is_condemned) given[key] = payload;
    }
    if (is_condemned) refused.add(key, payload);
    return !refused.has(key, payload);
}

result<store::lookup> remote_tier::find(store::address const& at, store::expectation const& expected) {
    auto got = ask_sync({.family = at.family,
                         .request = at.request,
                         .key = at.key,
                         .expected = expected,
                         .how = store::urgency::nothing_else_will_do});
    return store::lookup{.hit = std::move(got.hit), .why = got.why};
}

result<std::vector<store::summary>> remote_tier::list(digest const& family, std::optional<digest> const& request) {
    std::vector<store::summary> out;
    if (!request) return out;
    for (unsigned nth = 0; nth < slots; ++nth) {
        auto const got =
            ask_sync({.family = family, .request = *request, .nth = nth, .how = store::urgency::nothing_else_will_do});
        if (!got.hit) break;
        out.push_back({.about = got.hit->about, .bytes = got.hit->payload.size() + 1, .from = got.hit->from});
    }
    return out;
}

result<store::put_outcome> remote_tier::put(store::entry_ptr const& what) {
    KILN_ASSERT(what != nullptr);
    if (options_.writes == writing::never) return fail(errc::forbidden, "{} is only read", options_.at.text());
    auto const* const how = rules();
    auto const s = current();
    if (!s) return fail(errc::forbidden, "{} is not used: {}", options_.at.text(), trouble_with_keys());
    auto const payload = base::sha256_of(what->payload);
    KILN_TRY(auto const entry, store::encode_entry(*what));
    std::vector<packet_signature> signatures;
    if (how->signs) {
        base::library_use const openssl;
        if (!openssl) return store::put_outcome{.kept = false, .why = "late", .detail = "the program ends"};
        signatures.push_back(sign_entry(*how->signs, options_.space, entry));
    }
    auto packet = std::make_shared<base::bytes const>(encode_packet(signatures, entry));
    if (packet->size() > options_.most_entry) {
        common_->counts.add("dropped");
        common_->counts.error(name_of(trouble::too_large));
        common_->events->emit(
            {.kind = event_kind::fault,
             .unit = what->about.name,
             .target = what->about.target,
             .reason = "fleet",
             .detail = fmt::format("{}: {} is sent nothing of {} bytes: max-entry={}", name_of(trouble::too_large),
                                   options_.at.text(), packet->size(), options_.most_entry)});
        // Nobody need wait for what will never be there.
        (void)s->loop.post(
            [raw = s.get(), request = what->about.at.request] { raw->asks.cannot_publish(request, "too-large"); });
        return store::put_outcome{.kept = false, .why = "too-large"};
    }
    if (!common_->may_give(what->about.at.key, payload)) return store::put_outcome{.kept = false, .why = "refused"};
    auto const meet = std::make_shared<rendezvous<result<store::put_outcome>>>();
    auto const parcel = std::make_shared<client::parcel>(
        client::parcel{.about = what->about, .payload = payload, .packet = std::move(packet)});
    bool const posted = s->loop.post([raw = s.get(), parcel, meet] {
        raw->asks.put(std::move(*parcel), [meet](result<store::put_outcome> r) { meet->put(std::move(r)); });
    });
    if (!posted) return store::put_outcome{.kept = false, .why = "unwritable", .detail = "no thread is left"};
    auto done = meet->wait(base::clock::now() + options_.connect_timeout + 2 * options_.timeout);
    if (!done) return store::put_outcome{.kept = false, .why = "late", .detail = "the server did not answer in time"};
    return *std::move(done);
}

void remote_tier::reject(store::address const& at) noexcept {
    std::optional<digest> payload;
    auto& c = *common_;
    {
        std::lock_guard const lock{c.mutex};
        if (auto const given = c.given.find(at.key); given != c.given.end()) payload = given->second;
        else c.condemned.insert(at.key);  // not seen yet: what the server has of it when it is
    }
    if (payload) c.refused.add(at.key, *payload);
}

store::statistics remote_tier::take_counts() { return common_->counts.take(); }

template <class T>
std::optional<T> remote_tier::call(std::function<void(byte_server&, std::function<void(T)>)> what,
                                   std::chrono::milliseconds most) {
    auto const s = current();
    if (!s) return std::nullopt;
    auto const meet = std::make_shared<rendezvous<T>>();
    if (!s->loop.post(
            [raw = s.get(), what, meet] { what(*raw->made_of.bytes, [meet](T v) { meet->put(std::move(v)); }); }))
        return std::nullopt;
    return meet->wait(base::clock::now() + most);
}

remote_tier::condition remote_tier::examine() {
    condition out;
    auto const s = current();
    if (!s) {
        out.why = {trouble::denied, trouble_with_keys()};
        return out;
    }
    out.leases = s->made_of.leases == nullptr            ? "none"
                 : options_.leases == leasing::elsewhere ? options_.lease_at->text()
                                                         : "by the server";
    auto const most = options_.connect_timeout + options_.timeout;
    base::stopwatch watch;
    auto facts = call<server_facts>([](byte_server& b, auto then) { b.describe(std::move(then)); }, most);
    bool const is_stuck = !facts && is_held_up(store::urgency::somebody_waits);
    if (!facts) facts.emplace().why = {trouble::timeout, std::string{is_stuck ? held_up : "no answer"}};
    out.why = std::move(facts->why);
    out.said = std::move(facts->said);
    out.certificate_days = facts->certificate_days;
    if (!out.why) {
        // Connected by now: this is what an answer takes.
        watch = {};
        (void)call<failure>([](byte_server& b, auto then) { b.ping(std::move(then)); }, most);
        out.round_trip_ms = watch.ms();
    }
    out.breaker_open = common_->guard.get().is_open();
    struct numbers {
        std::chrono::nanoseconds typical, slow;
        byte_server::traffic traffic;
    };
    auto const meet = std::make_shared<rendezvous<numbers>>();
    bool const posted = s->loop.post([raw = s.get(), meet] {
        auto const& waits = raw->asks.waits();
        meet->put({waits.quantile(0.5), waits.quantile(0.95), raw->made_of.bytes->counted()});
    });
    // The thread may be held up by a file: a certificate on a disk that hangs.
    if (auto const seen = posted ? meet->wait(base::clock::now() + most) : std::nullopt) {
        out.typical = seen->typical;
        out.slow = seen->slow;
        out.traffic = seen->traffic;
    }
    return out;
}

base::bytes probe_packet() { return encode_packet({}, base::bytes(64, std::byte{7})); }

std::string remote_tier::try_writing() {
    if (options_.writes == writing::never) return {};
    auto const name = base::sha256_of("kiln probe " + base::random_name());
    auto const data = std::make_shared<base::bytes const>(probe_packet());
    auto const most = options_.connect_timeout + options_.timeout;
    auto const put = call<put_answer>(
        [=](byte_server& b, auto then) { b.put(name, data, put_rule::create, std::move(then)); }, most);
    if (!put) return "no answer to a put";
    if (put->state == put_state::exists) return "it has what nobody ever wrote";
    if (put->state != put_state::stored) return fmt::format("{}: {}", name_of(put->why.what), put->why.detail);
    auto const back = call<got>(
        [=](byte_server& b, auto then) { b.get({name}, [then](std::size_t, got g) { then(std::move(g)); }); }, most);
    auto const gone = call<failure>([=](byte_server& b, auto then) { b.remove(name, std::move(then)); }, most);
    if (!back || back->state != presence::here || back->packet != *data) return "what was written is not what is read";
    if (!gone || *gone) return {};  // not every server lets one remove; what is left is 64 bytes
    return {};
}

std::string remote_tier::try_lease() {
    auto const s = current();
    if (!s || s->made_of.leases == nullptr || options_.writes == writing::never) return {};
    auto const name = base::sha256_of("kiln probe " + base::random_name());
    auto* const keeper = s->made_of.leases;
    auto const most = options_.connect_timeout + options_.timeout;
    auto const take = [&](std::string const& token) {
        return call<lease_look>([=](byte_server&, auto then) { keeper->take(name, token, std::move(then)); }, most);
    };
    auto const first = take("a"), second = take("b");
    (void)call<failure>([=](byte_server&, auto then) { keeper->end(name, "a", std::move(then)); }, most);
    if (!first || !second) return "no answer";
    if (first->why) return fmt::format("{}: {}", name_of(first->why.what), first->why.detail);
    if (first->state != lease_state::ours || second->state != lease_state::held) return "two got the same lease";
    return {};
}

std::vector<std::shared_ptr<store::tier>> make_tiers(base::config const& config,
                                                     std::shared_ptr<store::event_outlet> const& events) {
    std::vector<std::shared_ptr<store::tier>> out;
    auto list = remotes_of(config);
    for (auto const& off : list.off)
        events->emit({.kind = event_kind::warned,
                      .reason = "fleet-off",
                      .detail = fmt::format("{}: not used: {}; {}", off.url, off.why, off.remedy)});
    auto const rule = config.flag("KILN_RECACHE") ? put_rule::replace : put_rule::create;
    for (auto& o : list.usable) out.push_back(std::make_shared<remote_tier>(std::move(o), events, rule));
    return out;
}

}  // namespace kiln::remote
