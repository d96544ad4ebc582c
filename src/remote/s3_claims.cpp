// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_claims.hpp"

#include "remote/http_answers.hpp"

namespace kiln::remote {

namespace {

constexpr std::string_view open_claim = "open ";
constexpr std::size_t most_claim = 4096;

// Another was faster: 412; 409 while he is at it; old MinIO says 304.
bool was_beaten(http_response const& r) { return !r.why && (r.status == 412 || r.status == 409 || r.status == 304); }
// It is not as we knew it any more; 404 where it is gone.
bool was_changed(http_response const& r) { return was_beaten(r) || is_absent(r); }
bool cannot_be_conditional(http_response const& r) { return !r.why && r.status == 501; }

}  // namespace

s3_claims::s3_claims(std::string base, sender send, rules how)
    : base_{std::move(base)}, send_{std::move(send)}, rules_{how} {}

std::string s3_claims::url_of(digest const& name) const { return fmt::format("{}/{}", base_, name.hex()); }

s3_claims::seen s3_claims::read(http_response const& r) const {
    if (is_absent(r)) return {};
    if (!is_good(r)) return {.what = {.why = failure_of(r)}};
    bool const open = base::as_text(r.body).starts_with(open_claim);
    // Where the server does not say how old it is, whoever waits for it ends by his own patience.
    auto const age = age_of(r).value_or(std::chrono::seconds{0});
    bool const over = age >= (open ? rules_.open_for : rules_.life);
    auto const state = over ? lease_state::absent : open ? lease_state::open : lease_state::held;
    return {.what = {.state = state}, .version = r.header("etag"), .text = std::string{base::as_text(r.body)}};
}

void s3_claims::read_one(digest const& name, std::function<void(seen)> then) {
    send_({.url = url_of(name), .most = most_claim},
          [this, then = std::move(then)](http_response r) { then(read(r)); });
}

void s3_claims::write(digest const& name, std::string_view text, std::string const& version,
                      std::function<void(http_response)> then) {
    auto const raw = base::as_bytes(text);
    http_request what{
        .method = "PUT", .url = url_of(name), .body = std::make_shared<base::bytes const>(raw.begin(), raw.end())};
    what.headers.push_back(version.empty() ? "If-None-Match: *" : "If-Match: " + version);
    send_(std::move(what), std::move(then));
}

void s3_claims::written(digest const& name, std::string const& token, http_response const& r) {
    ours_[name] = {.token = token, .version = r.header("etag"), .written = base::clock::now()};
}

void s3_claims::take(digest const& name, std::string const& token, std::function<void(lease_look)> then) {
    auto const settle = [this, name, token, then](http_response const& r) {
        if (is_good(r)) {
            written(name, token, r);
            return then({.state = lease_state::ours});
        }
        // Nobody can be kept from compiling by a server that knows no conditions.
        if (cannot_be_conditional(r)) return then({.state = lease_state::open});
        then({.why = failure_of(r)});
    };
    write(name, token, {}, [this, name, token, then, settle](http_response const& r) {
        if (!was_beaten(r)) return settle(r);
        read_one(name, [this, name, token, then, settle](seen s) {
            // One that is over is taken from whoever left it, unless another does so first.
            bool const over = !s.what.why && s.what.state == lease_state::absent && !s.version.empty();
            if (!over) return then(std::move(s.what));
            write(name, token, s.version, [then, settle](http_response const& again) {
                if (was_changed(again)) return then({.state = lease_state::held});
                settle(again);
            });
        });
    });
}

void s3_claims::look(std::vector<digest> const& names, looked then) {
    struct all {
        std::vector<lease_look> found;
        std::size_t left;
    };
    auto const some = std::make_shared<all>(all{std::vector<lease_look>(names.size()), names.size()});
    for (std::size_t i = 0; i < names.size(); ++i) {
        read_one(names[i], [some, i, then](seen s) {
            some->found[i] = std::move(s.what);
            if (--some->left == 0) then(std::move(some->found));
        });
    }
}

s3_claims::ours* s3_claims::held(digest const& name, std::string const& token) {
    auto const at = ours_.find(name);
    if (at == ours_.end() || at->second.token != token) return nullptr;
    return &at->second;
}

void s3_claims::renew(digest const& name, std::string const& token) {
    auto* const mine = held(name, token);
    if (mine == nullptr || base::clock::now() - mine->written < rules_.renewal) return;
    mine->written = base::clock::now();  // not asked again while this is under way
    write(name, token, mine->version, [this, name, token](http_response r) {
        if (held(name, token) == nullptr) return;
        if (is_good(r)) written(name, token, r);
        else if (was_changed(r)) ours_.erase(name);
    });
}

// Not every server removes on a condition: what was written a moment ago is still ours, what is older is looked at first.
void s3_claims::end(digest const& name, std::string const& token, done then) {
    auto const* const mine = held(name, token);
    bool const surely = mine != nullptr && base::clock::now() - mine->written < rules_.life / 2;
    if (mine != nullptr) ours_.erase(name);
    auto const remove = [this, name, then] {
        send_({.method = "DELETE", .url = url_of(name)},
              [then](http_response const& r) { then(is_good(r) || is_absent(r) ? failure{} : failure_of(r)); });
    };
    if (surely) return remove();
    read_one(name, [token, then, remove](seen const& s) {
        if (s.text == token) return remove();
        then(s.what.why);
    });
}

void s3_claims::mark_open(digest const& name, std::string const& token, std::string_view reason) {
    auto const* const mine = held(name, token);
    if (mine == nullptr) return;
    auto const version = mine->version;
    ours_.erase(name);
    write(name, std::string{open_claim} + std::string{reason}, version, [](http_response const&) {});
}

}  // namespace kiln::remote
