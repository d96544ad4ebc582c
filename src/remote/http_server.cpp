// SPDX-License-Identifier: Apache-2.0
#include "remote/http_server.hpp"

#include "remote/action_result.hpp"
#include "remote/certificate.hpp"
#include "remote/http_answers.hpp"
#include "remote/s3.hpp"
#include "remote/s3_claims.hpp"
#include "remote/secrets.hpp"

namespace kiln::remote {

namespace {

constexpr std::chrono::milliseconds credentials_are_looked_at{500};

got failed_get(http_response const& r) {
    if (is_absent(r)) return {};
    if (r.why.what == trouble::too_large) return {.state = presence::too_large};
    return {.state = presence::failed, .packet = {}, .why = failure_of(r)};
}

// Whoever takes no PUT (405), or not there (404, 409), may still be read.
failure failure_of_put(http_response const& r) {
    auto out = failure_of(r);
    bool const refused = out.what == trouble::protocol && !r.why && r.status >= 400;
    if (refused) out = {trouble::denied, out.detail + " to a PUT"};
    return out;
}

// What the three kinds of HTTP servers have in common.
class http_base : public byte_server {
public:
    http_base(reactor& loop, remote_options const& options, curl_options how)
        : options_{options}, curl_{loop, std::move(how), traffic_} {
        curl_.on_connected = [this] {
            if (on_connected) on_connected();
        };
    }

    void get(std::vector<digest> const& names, each then) override {
        auto const to_each = std::make_shared<each>(std::move(then));
        for (std::size_t i = 0; i < names.size(); ++i)
            get_one(names[i], [to_each, i](got g) { (*to_each)(i, std::move(g)); });
    }
    void remove(digest const& name, std::function<void(failure)> then) override {
        send({.method = "DELETE", .url = url_of(name)}, [then = std::move(then)](http_response r) {
            then(is_good(r) || is_absent(r) ? failure{} : failure_of(r));
        });
    }
    // A server that knows us says 404.
    void ping(std::function<void(failure)> then) override {
        get_one(a_name_nobody_has(), [then = std::move(then)](got g) { then(std::move(g.why)); });
    }
    [[nodiscard]] std::size_t batch() const noexcept override { return 256; }
    void describe(std::function<void(server_facts)> then) override {
        http_request what{.url = url_of(a_name_nobody_has()), .most = most()};
        what.tells_certificate = what.url.starts_with("https://");
        send(std::move(what), [then = std::move(then)](http_response r) {
            server_facts out{.certificate_days = days_left(r.certificate)};
            out.why = is_good(r) ? failure{trouble::protocol, "it has something under a name that nobody has"}
                                 : failed_get(r).why;
            // Nothing is there, and never will be: not the miss that it is to a look-up.
            if (is_absent(r) && base::as_text(r.body).find("<Code>NoSuchBucket</Code>") != std::string_view::npos)
                out.why = {trouble::protocol, "there is no such bucket"};
            then(std::move(out));
        });
    }
    void give_up_waiting(failure const& why) override { curl_.refuse_waiting(why); }
    void close() noexcept override { curl_.close(); }

protected:
    [[nodiscard]] static digest a_name_nobody_has() { return base::sha256_of("kiln ping " + base::random_name()); }
    [[nodiscard]] virtual std::string url_of(digest const& name) const = 0;
    virtual void get_one(digest const& name, std::function<void(got)> then) {
        send({.url = url_of(name), .most = most()}, [then = std::move(then)](http_response r) {
            if (!is_good(r)) return then(failed_get(r));
            then({.state = presence::here, .packet = std::move(r.body)});
        });
    }
    [[nodiscard]] std::size_t most() const noexcept {
        return static_cast<std::size_t>(options_.most_entry) + (64 << 10);
    }
    // With who we are.
    virtual void send(http_request what, curl_client::answered then) {
        auto const token = token_source{options_.token_file}.read();
        if (!token) what.refused = {trouble::denied, std::string{token.error().message()}};
        else if (!token->empty()) what.headers.push_back(authorization(*token));
        curl_.send(std::move(what), std::move(then));
    }
    // PUT of a whole object. No server here can make only what is not there yet, so it is looked at first.
    void put_there(std::string const& url, std::shared_ptr<base::bytes const> data,
                   std::function<void(put_answer)> then) {
        send({.method = "PUT", .url = url, .body = std::move(data)}, [then = std::move(then)](http_response r) {
            if (is_good(r)) return then({});
            then({put_state::failed, failure_of_put(r)});
        });
    }
    void unless_there(std::string const& url, std::function<void(put_answer)> then, std::function<void()> absent) {
        send({.method = "HEAD", .url = url}, [then = std::move(then), absent = std::move(absent)](http_response r) {
            if (is_good(r)) return then({put_state::exists, {}});
            if (is_absent(r)) return absent();
            then({put_state::failed, failure_of(r)});
        });
    }

    remote_options options_;
    curl_client curl_;
};

curl_options curl_options_of(remote_options const& o) {
    return {.connect_timeout = o.connect_timeout,
            .timeout = o.timeout,
            .ca = o.ca.native(),
            .certificate = o.certificate.native(),
            .certificate_key = o.certificate_key.native()};
}

std::string in_subdirs(std::string const& base, digest const& name) {
    auto const hex = name.hex();
    return fmt::format("{}/{}/{}", base, hex.substr(0, 2), hex.substr(2));
}

class subdirs_server final : public http_base {
public:
    subdirs_server(reactor& loop, remote_options const& o) : http_base{loop, o, curl_options_of(o)} {}
    void put(digest const& name, std::shared_ptr<base::bytes const> packet, put_rule rule,
             std::function<void(put_answer)> then) override {
        auto const url = url_of(name);
        if (rule == put_rule::replace) return put_there(url, std::move(packet), std::move(then));
        unless_there(url, then, [this, url, packet, then] { put_there(url, packet, then); });
    }

protected:
    [[nodiscard]] std::string url_of(digest const& name) const override { return in_subdirs(options_.at.text(), name); }
};

// The record says which blob, and the blob is checked by its digest there and here.
class bazel_server final : public http_base {
public:
    bazel_server(reactor& loop, remote_options const& o) : http_base{loop, o, curl_options_of(o)} {}

    void put(digest const& name, std::shared_ptr<base::bytes const> packet, put_rule rule,
             std::function<void(put_answer)> then) override {
        auto const url = url_of(name);
        auto const parts = decode_packet(*packet).parts;
        KILN_ASSERT(parts);
        auto const entry = std::make_shared<base::bytes const>(
            packet->begin() + static_cast<std::ptrdiff_t>(parts->front), packet->end());
        auto const record = record_of(*entry, parts->signatures);
        if (rule == put_rule::replace) return put_both(url, record, entry, std::move(then));
        unless_there(url, then, [this, url, record, entry, then] { put_both(url, record, entry, then); });
    }

protected:
    [[nodiscard]] std::string url_of(digest const& name) const override {
        return fmt::format("{}/ac/{}", options_.at.text(), name.hex());
    }
    void get_one(digest const& name, std::function<void(got)> then) override {
        send({.url = url_of(name), .most = most_action_result}, [this, then = std::move(then)](http_response r) {
            if (!is_good(r)) return then(failed_get(r));
            auto const record = decode_action_result(r.body);
            // Something is there that is not ours: rejected as a packet would be.
            if (!record) return then({.state = presence::here, .packet = std::move(r.body)});
            if (record->entry_bytes > most()) return then({.state = presence::too_large});
            get_blob(*record, then);
        });
    }

private:
    static action_record record_of(base::bytes const& entry, std::vector<packet_signature> signatures) {
        return {.entry = base::sha256_of(base::byte_span{entry}),
                .entry_bytes = entry.size(),
                .signatures = std::move(signatures)};
    }
    [[nodiscard]] std::string blob_url(digest const& entry) const {
        return fmt::format("{}/cas/{}", options_.at.text(), entry.hex());
    }
    void get_blob(action_record const& record, std::function<void(got)> then) {
        send({.url = blob_url(record.entry), .most = most()}, [record, then = std::move(then)](http_response r) {
            // A record whose blob is gone is a miss, and both are put again.
            if (!is_good(r)) return then(failed_get(r));
            auto const same = base::sha256_of(base::byte_span{r.body}) == record.entry;
            if (!same) return then({.state = presence::here, .packet = std::move(r.body)});
            then({.state = presence::here, .packet = encode_packet(record.signatures, r.body)});
        });
    }
    void put_both(std::string const& url, action_record const& record, std::shared_ptr<base::bytes const> entry,
                  std::function<void(put_answer)> then) {
        put_there(blob_url(record.entry), std::move(entry), [this, url, record, then = std::move(then)](put_answer a) {
            if (a.state != put_state::stored) return then(std::move(a));
            put_there(url, std::make_shared<base::bytes const>(encode_action_result(record)), then);
        });
    }
};

class s3_server final : public http_base {
public:
    s3_server(reactor& loop, remote_options const& o, s3_access access)
        : http_base{loop, o, signed_by(o, access)},
          access_{std::move(access)},
          claims_{access_.base + "/claims",
                  [this](http_request what, curl_client::answered then) { send(std::move(what), std::move(then)); }} {}

    [[nodiscard]] lease_server* leases() noexcept override { return &claims_; }

    void put(digest const& name, std::shared_ptr<base::bytes const> packet, put_rule rule,
             std::function<void(put_answer)> then) override {
        put_again(name, std::move(packet), rule, std::move(then), 2);
    }
    // Others may have seen already that the file of credentials is another: whoever opens it again looks first.
    void close() noexcept override {
        looked_at_ = {};
        http_base::close();
    }

protected:
    [[nodiscard]] std::string url_of(digest const& name) const override { return in_subdirs(access_.base, name); }
    void send(http_request what, curl_client::answered then) override {
        look_who_we_are();
        if (!access_.why.empty()) what.refused = {trouble::denied, access_.why};
        add_s3_headers(access_, what);
        curl_.send(std::move(what), std::move(then));
    }

private:
    static curl_options signed_by(remote_options const& o, s3_access const& a) {
        auto out = curl_options_of(o);
        out.aws = signing_scheme(a);
        out.user = user_of(a);
        return out;
    }
    // Credentials that are lent for an hour are written anew before it is over.
    void look_who_we_are() {
        auto const now = base::clock::now();
        if (options_.credentials_file.empty() || now - looked_at_ < credentials_are_looked_at) return;
        looked_at_ = now;
        auto const stamp = token_source{options_.credentials_file}.stamp();
        if (stamp_ == stamp) return;
        stamp_ = stamp;
        access_ = s3_access_of(options_);
        curl_.sign_as(user_of(access_));
    }
    static std::string user_of(s3_access const& a) { return a.id + ":" + a.secret; }
    // 412: it is there. 409: somebody is at it this moment. Old MinIO says 304 for 412.
    void put_again(digest const& name, std::shared_ptr<base::bytes const> packet, put_rule rule,
                   std::function<void(put_answer)> then, int attempts) {
        http_request what{.method = "PUT", .url = url_of(name), .body = packet};
        if (rule == put_rule::create) what.headers.push_back("If-None-Match: *");
        send(std::move(what), [=, this](http_response r) {
            if (is_good(r)) return then({});
            if (!r.why && (r.status == 412 || r.status == 304)) return then({put_state::exists, {}});
            if (!r.why && r.status == 409 && attempts > 0) return put_again(name, packet, rule, then, attempts - 1);
            // A server that knows no conditional PUT.
            if (!r.why && r.status == 501 && rule == put_rule::create)
                return unless_there(url_of(name), then,
                                    [=, this] { put_again(name, packet, put_rule::replace, then, 0); });
            then({put_state::failed, why_not_put(r)});
        });
    }
    // Others were at it each time, or it gave up waiting for us, which it says by 400: neither says that we may not.
    static failure why_not_put(http_response const& r) {
        auto out = failure_of_put(r);
        auto const says = [&](std::string_view code) {
            return base::as_text(r.body).find(code) != std::string_view::npos;
        };
        bool const was_too_slow = r.status == 400 && says("<Code>RequestTimeout</Code>");
        bool const had_others = r.status == 409 && (says(">ConditionalRequestConflict<") || says(">OperationAborted<"));
        if (!r.why && (was_too_slow || had_others)) out.what = trouble::server;
        return out;
    }
    s3_access access_;
    s3_claims claims_;
    std::optional<std::uint64_t> stamp_{};
    base::time_point looked_at_{};
};

}  // namespace

std::unique_ptr<byte_server> make_http_server(reactor& loop, remote_options const& options) {
    if (options.at.by == scheme::s3) {
        // A file of credentials is read by who sends, on the reactor's thread.
        auto access = options.credentials_file.empty() ? s3_access_of(options) : s3_place_of(options);
        return std::make_unique<s3_server>(loop, options, std::move(access));
    }
    if (options.layout == layout::bazel) return std::make_unique<bazel_server>(loop, options);
    return std::make_unique<subdirs_server>(loop, options);
}

}  // namespace kiln::remote
