// SPDX-License-Identifier: Apache-2.0
#include "remote/shipping.hpp"

#include "remote/http_answers.hpp"
#include "remote/registry.hpp"
#include "remote/s3.hpp"
#include "remote/secrets.hpp"

namespace kiln::remote {

namespace {

// One object of a server of files or of a bucket.
class single_object {
public:
    static result<single_object> at(std::string_view url, shipping_options const& how) {
        single_object out{url, how};
        // A query is a permission of its own, and nothing is said beside it.
        bool const presigned = url.find('?') != url.npos;
        if (url.find("://") == url.npos)
            return fail(errc::invalid_argument,
                        "'{}' is no place for a bundle; write oci://host/repository:tag, https://host/app.kiln or "
                        "s3://bucket/app.kiln",
                        shown_url(url));
        KILN_TRY(auto const place, parse_url(url.substr(0, url.find('?'))));
        if (place.is_redis()) return fail(errc::invalid_argument, "{}: Redis keeps no whole bundles", shown_url(url));
        if (place.by == scheme::s3) {
            out.bucket_ = s3_access_of({.at = place,
                                        .region = how.region,
                                        .endpoint = how.endpoint,
                                        .credentials_file = how.credentials_file});
            if (!out.bucket_->why.empty()) return fail(errc::forbidden, "{}: {}", shown_url(url), out.bucket_->why);
            out.url_ = out.bucket_->base;
            return out;
        }
        if (presigned) return out;
        KILN_TRY(out.token_, token_source{how.token_file}.read());
        if (!out.token_.empty() && place.is_overheard())
            return fail(errc::forbidden, "{}: a token would cross the network in clear text; use https://",
                        shown_url(url));
        return out;
    }

    [[nodiscard]] http_response call(http_request what) const {
        what.url = url_;
        curl_options how{.connect_timeout = how_.connect_timeout,
                         .timeout = how_.timeout,
                         .stall = how_.stall,
                         .ca = how_.ca.native()};
        if (bucket_) sign_with(*bucket_, how, what);
        else if (!token_.empty()) what.headers.push_back(authorization(token_));
        http_caller caller{std::move(how)};
        return caller.call(std::move(what));
    }

private:
    single_object(std::string_view url, shipping_options const& how) : url_{url}, how_{how} {}
    std::string url_;  // may hold a permission
    shipping_options how_;
    std::string token_;
    std::optional<s3_access> bucket_;
};

error not_shipped(std::string_view url, http_response const& r) {
    auto const why = failure_of(r);
    bool const bucket = url.starts_with("s3://") && why.what == trouble::denied;
    return fail(errc::io, "{}: {}: {}{}", shown_url(url), name_of(why.what), why.detail,
                bucket ? "; give --credentials-file of who may read and write there" : shipping_remedy(why));
}

bool is_registry(std::string_view url) { return url.starts_with("oci://"); }

}  // namespace

result<shipment> ship_bundle(std::string_view to, base::bytes bundle, std::string_view title,
                             shipping_options const& how) {
    if (is_registry(to)) {
        KILN_TRY(auto at, parse_registry(to));
        return registry{std::move(at), how}.push(std::move(bundle), title);
    }
    KILN_TRY(auto const place, single_object::at(to, how));
    shipment out{.of = base::sha256_of(base::byte_span{bundle})};
    auto const r = place.call({.method = "PUT", .body = std::make_shared<base::bytes const>(std::move(bundle))});
    if (!is_good(r)) return not_shipped(to, r);
    return out;
}

result<base::bytes> fetch_bundle(std::string_view from, shipping_options const& how) {
    if (is_registry(from)) {
        KILN_TRY(auto at, parse_registry(from));
        return registry{std::move(at), how}.pull();
    }
    KILN_TRY(auto const place, single_object::at(from, how));
    auto r = place.call({.most = static_cast<std::size_t>(how.most_bytes)});
    if (is_absent(r)) return fail(errc::not_found, "{}: there is nothing of that name", shown_url(from));
    if (!is_good(r)) return not_shipped(from, r);
    return std::move(r.body);
}

}  // namespace kiln::remote
