// SPDX-License-Identifier: Apache-2.0
#include "remote/redis_server.hpp"

#include "remote/certificate.hpp"

#include <algorithm>

namespace kiln::remote {

namespace {

constexpr std::string_view open_mark = "open ";
constexpr std::size_t most_reply = std::size_t{32} << 20;

// SET ... IFEQ is not known before Redis 8: compared and changed in one step by a script.
constexpr std::string_view renew_script =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 0";
constexpr std::string_view end_script =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0";
constexpr std::string_view open_script =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('SET',KEYS[1],ARGV[2],'PX',ARGV[3]) end return 0";

std::string object_key(digest const& name) { return "kiln:1:" + name.hex(); }
std::string lease_key(digest const& name) { return "kiln:1:l:" + name.hex(); }

failure failure_of(resp::value const& v) {
    auto const text = v.text();
    auto const begins = [&](std::string_view word) { return text.starts_with(word); };
    if (!v.is_error()) return {trouble::protocol, "an answer of another kind"};
    if (begins("OOM") || begins("MISCONF")) return {trouble::full, clean_text(text)};
    if (begins("NOAUTH") || begins("WRONGPASS") || begins("NOPERM") || begins("READONLY"))
        return {trouble::denied, clean_text(text)};
    return {trouble::server, clean_text(text)};
}

// A list, a hash: somebody else's thing under a name of ours. The server is well, and what it has there is not sound.
bool is_of_another_type(resp::value const& v) { return v.is_error() && v.text().starts_with("WRONGTYPE"); }

got got_of(resp::value v) {
    // What it says instead of the bytes is rejected as other bytes that are no packet, and replaced.
    if (v.kind == resp::kind::bulk || is_of_another_type(v))
        return {.state = presence::here, .packet = std::move(v.data)};
    if (v.kind == resp::kind::null) return {};
    return {.state = presence::failed, .why = failure_of(v)};
}

lease_look look_of(resp::value const& v, std::string_view ours = {}) {
    if (v.kind == resp::kind::null) return {};
    // Never ends, and nobody holds it.
    if (is_of_another_type(v)) return {.state = lease_state::open};
    if (v.kind != resp::kind::bulk) return {.why = failure_of(v)};
    if (v.text().starts_with(open_mark)) return {.state = lease_state::open};
    return {.state = !ours.empty() && v.text() == ours ? lease_state::ours : lease_state::held};
}

// Who keeps only leases is another server: the token that is for the bytes is none of its business.
std::optional<token_source> token_of(remote_options const& o, redis_server::duty what) {
    if (what == redis_server::duty::bytes) return token_source{o.token_file};
    if (o.lease_token_file.empty()) return std::nullopt;
    return token_source{o.lease_token_file};
}

link_options link_options_of(remote_options const& o, redis_server::duty what) {
    link_options out{.at = what == redis_server::duty::bytes ? o.at : *o.lease_at,
                     .token = token_of(o, what),
                     .connect_timeout = o.connect_timeout,
                     .timeout = o.timeout};
    out.ca = o.ca.native();
    out.certificate = o.certificate.native();
    out.certificate_key = o.certificate_key.native();
    out.limits.bulk = static_cast<std::size_t>(o.most_entry) + (std::size_t{64} << 10);
    // A part of a batch that is larger is asked for one by one.
    out.limits.whole = std::max(most_reply, out.limits.bulk + (std::size_t{64} << 10));
    return out;
}

// A part is looked at when all of it is there: a few, so that checks begin early.
constexpr std::size_t names_at_a_time = 4;

// What is only done, and not answered.
void ignore(redis_link::reply const&) {}

std::function<void(redis_link::reply)> told(std::function<void(failure)> then) {
    return [then = std::move(then)](redis_link::reply r) {
        if (!r.why && r.value.is_error()) r.why = failure_of(r.value);
        then(std::move(r.why));
    };
}

}  // namespace

redis_server::redis_server(reactor& loop, remote_options const& options, duty what)
    : options_{options}, link_{loop, link_options_of(options, what), traffic_} {
    link_.on_connected = [this] {
        if (on_connected) on_connected();
    };
}

void redis_server::get_one(digest const& name, std::function<void(got)> then) {
    link_.send({"GET", object_key(name)}, [then = std::move(then)](redis_link::reply r) {
        if (r.why.what == trouble::too_large) return then({.state = presence::too_large});
        if (r.why) return then({.state = presence::failed, .packet = {}, .why = std::move(r.why)});
        then(got_of(std::move(r.value)));
    });
}

// One by one, the next after the answer to the last.
void redis_server::get_singly(std::vector<digest> const& names, each then) {
    auto step = std::make_shared<std::function<void(std::size_t)>>();
    *step = [this, names, then = std::move(then), weak = std::weak_ptr{step}](std::size_t i) {
        get_one(names[i], [names, then, i, again = weak.lock()](got g) {
            then(i, std::move(g));
            if (i + 1 < names.size() && again) (*again)(i + 1);
        });
    };
    (*step)(0);
}

// In parts, one behind the other: what has come is looked at while the server sends the next.
void redis_server::get(std::vector<digest> const& names, each then) {
    if (names.empty()) return;
    if (names.size() == 1) return get_one(names[0], [then = std::move(then)](got g) { then(0, std::move(g)); });
    auto const to_each = std::make_shared<each>(std::move(then));
    for (std::size_t from = 0; from < names.size(); from += names_at_a_time) {
        auto const end = std::min(names.size(), from + names_at_a_time);
        get_some({names.begin() + static_cast<std::ptrdiff_t>(from), names.begin() + static_cast<std::ptrdiff_t>(end)},
                 [to_each, from](std::size_t i, got g) { (*to_each)(from + i, std::move(g)); });
    }
}

void redis_server::get_some(std::vector<digest> const& names, each then) {
    std::vector<std::string> keys;
    keys.reserve(names.size());
    for (auto const& n : names) keys.push_back(object_key(n));
    std::vector<std::string_view> words{"MGET"};
    words.insert(words.end(), keys.begin(), keys.end());
    link_.send(words, [this, names, then = std::move(then)](redis_link::reply r) {
        // One of them, or all together.
        if (r.why.what == trouble::too_large) return get_singly(names, then);
        auto const count = names.size();
        if (!r.why && (r.value.kind != resp::kind::array || r.value.items.size() != count)) r.why = failure_of(r.value);
        for (std::size_t i = 0; i < count; ++i) {
            if (r.why) then(i, {.state = presence::failed, .packet = {}, .why = r.why});
            else then(i, got_of(std::move(r.value.items[i])));
        }
    });
}

void redis_server::put(digest const& name, std::shared_ptr<base::bytes const> packet, put_rule rule,
                       std::function<void(put_answer)> then) {
    auto const key = object_key(name);
    std::vector<std::string_view> words{"SET", key, base::as_text(*packet)};
    std::string const life = options_.life ? std::to_string(options_.life->count() * 1000) : std::string{};
    if (!life.empty()) words.insert(words.end(), {"PX", life});
    if (rule == put_rule::create) words.push_back("NX");
    link_.send(words, [then = std::move(then)](redis_link::reply r) {
        if (r.why) return then({put_state::failed, std::move(r.why)});
        if (r.value.kind == resp::kind::null) return then({put_state::exists, {}});
        if (r.value.text() == "OK") return then({});
        then({put_state::failed, failure_of(r.value)});
    });
}

void redis_server::remove(digest const& name, std::function<void(failure)> then) {
    link_.send({"DEL", object_key(name)}, told(std::move(then)));
}

void redis_server::ping(std::function<void(failure)> then) { link_.send({"PING"}, told(std::move(then))); }

void redis_server::take(digest const& name, std::string const& token, std::function<void(lease_look)> then) {
    auto const key = lease_key(name);
    auto const life = std::to_string(terms_.life.count());
    link_.send({"SET", key, token, "NX", "PX", life}, [this, key, token, then = std::move(then)](redis_link::reply r) {
        if (r.why) return then({.why = std::move(r.why)});
        if (r.value.text() == "OK") return then({.state = lease_state::ours});
        if (r.value.is_error()) return then({.why = failure_of(r.value)});
        link_.send({"GET", key}, [token, then](redis_link::reply who) {
            if (who.why) return then({.why = std::move(who.why)});
            then(look_of(who.value, token));
        });
    });
}

void redis_server::look(std::vector<digest> const& names, looked then) {
    std::vector<std::string> keys;
    for (auto const& n : names) keys.push_back(lease_key(n));
    std::vector<std::string_view> words{"MGET"};
    words.insert(words.end(), keys.begin(), keys.end());
    link_.send(words, [count = names.size(), then = std::move(then)](redis_link::reply r) {
        if (!r.why && (r.value.kind != resp::kind::array || r.value.items.size() != count)) r.why = failure_of(r.value);
        std::vector<lease_look> out(count);
        for (std::size_t i = 0; i < count; ++i) {
            if (r.why) out[i].why = r.why;
            else out[i] = look_of(r.value.items[i]);
        }
        then(std::move(out));
    });
}

void redis_server::renew(digest const& name, std::string const& token) {
    link_.send({"EVAL", renew_script, "1", lease_key(name), token, std::to_string(terms_.life.count())}, ignore);
}

void redis_server::end(digest const& name, std::string const& token, done then) {
    link_.send({"EVAL", end_script, "1", lease_key(name), token}, told(std::move(then)));
}

void redis_server::mark_open(digest const& name, std::string const& token, std::string_view reason) {
    link_.send({"EVAL", open_script, "1", lease_key(name), token, std::string{open_mark} + std::string{reason},
                std::to_string(terms_.open_for.count())},
               ignore);
}

void redis_server::describe(std::function<void(server_facts)> then) {
    ping([this, then = std::move(then)](failure why) {
        if (why) return then({.why = std::move(why)});
        // A user of few rights may not ask this: then it is not said.
        link_.send({"CONFIG", "GET", "maxmemory-policy"}, [this, then](redis_link::reply policy) {
            server_facts facts{.certificate_days = days_left(link_.certificate())};
            if (policy.value.items.size() == 2)
                facts.said.emplace_back("memory-policy", clean_text(policy.value.items[1].text()));
            link_.send({"INFO", "clients"}, [then, facts](redis_link::reply r) mutable {
                auto const text = std::string{r.value.text()};
                for (std::string const name : {"connected_clients", "maxclients"}) {
                    auto const at = text.find(name + ":");
                    if (at == text.npos) continue;
                    auto const from = at + name.size() + 1;
                    facts.said.emplace_back(name, clean_text(text.substr(from, text.find('\r', from) - from)));
                }
                then(std::move(facts));
            });
        });
    });
}

void redis_server::scan(std::string const& cursor, std::function<void(page)> then) {
    link_.send({"SCAN", cursor, "MATCH", "kiln:1:*", "COUNT", "1000"}, [then = std::move(then)](redis_link::reply r) {
        page out{.why = std::move(r.why)};
        bool const good = r.value.items.size() == 2 && r.value.items[1].kind == resp::kind::array;
        if (!out.why && !good) out.why = failure_of(r.value);
        if (!out.why) {
            out.cursor = r.value.items[0].text();
            for (auto const& key : r.value.items[1].items) out.keys.emplace_back(key.text());
        }
        then(std::move(out));
    });
}

void redis_server::idle(std::string const& key, std::function<void(idleness)> then) {
    link_.send({"OBJECT", "IDLETIME", key}, [then = std::move(then)](redis_link::reply r) {
        idleness out{.why = std::move(r.why)};
        out.gone = !out.why && r.value.kind == resp::kind::null;
        if (!out.why && r.value.kind == resp::kind::integer) out.seconds = r.value.number;
        then(std::move(out));
    });
}

}  // namespace kiln::remote
