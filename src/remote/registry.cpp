// SPDX-License-Identifier: Apache-2.0
#include "remote/registry.hpp"
#include "base/text.hpp"

#include "remote/http_answers.hpp"
#include "remote/secrets.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace kiln::remote {

namespace {

using nlohmann::json;

constexpr std::string_view bundle_type = "application/vnd.kiln.bundle.v1";
constexpr std::string_view manifest_type = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view empty_type = "application/vnd.oci.empty.v1+json";
constexpr std::string_view empty_config = "{}";
constexpr std::size_t most_json = std::size_t{1} << 20;

bool is_repository(std::string_view text) {
    bool const plain = std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' || c == '/';
    });
    return plain && !text.empty() && text.size() <= 255 && text.find("//") == text.npos &&
           text.find("..") == text.npos && text.front() != '/' && text.back() != '/';
}

bool is_tag(std::string_view text) {
    return !text.empty() && text.size() <= 128 && text.front() != '.' && text.front() != '-' &&
           std::ranges::all_of(text, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                      c == '_' || c == '-';
           });
}

constexpr std::string_view digest_prefix = "sha256:";
std::string digest_text(digest const& of) { return std::string{digest_prefix} + of.hex(); }
std::optional<digest> digest_in(std::string_view text) {
    if (!text.starts_with(digest_prefix)) return std::nullopt;
    return digest::from_hex(text.substr(digest_prefix.size()));
}

// One value of `Bearer realm="...",service="..."`; empty where it is not there.
std::string quoted(std::string_view challenge, std::string_view name) {
    auto const at = challenge.find(fmt::format("{}=\"", name));
    if (at == challenge.npos) return {};
    auto const from = at + name.size() + 2;
    return std::string{challenge.substr(from, challenge.find('"', from) - from)};
}

std::string escaped(std::string_view text) {
    std::string out;
    for (char const c : text) {
        bool const plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                           c == '.' || c == '_' || c == '~';
        if (plain) out += c;
        else out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

std::shared_ptr<base::bytes const> bytes_of(std::string_view text) {
    auto const raw = base::as_bytes(text);
    return std::make_shared<base::bytes const>(raw.begin(), raw.end());
}

curl_options curl_for(shipping_options const& how) {
    return {.connect_timeout = how.connect_timeout, .timeout = how.timeout, .stall = how.stall, .ca = how.ca.native()};
}

struct layer {
    digest of;
    std::uint64_t bytes = 0;
};

// The one layer of a manifest of ours.
result<layer> layer_of(base::bytes const& manifest, std::uint64_t most) {
    auto const j = json::parse(base::as_text(manifest), nullptr, false);
    if (!j.is_object() || !j.contains("layers") || !j["layers"].is_array())
        return fail(errc::corrupt, "what is there is no manifest of an image");
    for (auto const& l : j["layers"]) {
        if (!l.is_object() || l.value("mediaType", json{}) != bundle_type) continue;
        auto const of = l.value("digest", json{}), size = l.value("size", json{});
        auto const named = of.is_string() ? digest_in(of.get_ref<std::string const&>()) : std::nullopt;
        if (!named || !size.is_number_unsigned()) return fail(errc::corrupt, "its manifest names no sound layer");
        if (size.get<std::uint64_t>() > most)
            return fail(errc::out_of_memory, "the bundle has {} bytes, more than the {} that are taken",
                        size.get<std::uint64_t>(), most);
        return layer{*named, size.get<std::uint64_t>()};
    }
    return fail(errc::not_found, "what is there holds no bundle of Kiln");
}

std::string manifest_of(digest const& bundle, std::size_t bytes, std::string_view title) {
    json const out{{"schemaVersion", 2},
                   {"mediaType", manifest_type},
                   {"artifactType", bundle_type},
                   {"config",
                    {{"mediaType", empty_type},
                     {"digest", digest_text(base::sha256_of(empty_config))},
                     {"size", empty_config.size()}}},
                   {"layers",
                    {{{"mediaType", bundle_type},
                      {"digest", digest_text(bundle)},
                      {"size", bytes},
                      {"annotations", {{"org.opencontainers.image.title", title}}}}}}};
    return base::json_text(out);
}

}  // namespace

std::string registry_place::text() const {
    auto const host = origin.substr(origin.find("://") + 3);
    return fmt::format("oci://{}/{}{}{}", host, repository, digest_in(reference) ? "@" : ":", reference);
}

result<registry_place> parse_registry(std::string_view url) {
    constexpr std::string_view prefix = "oci://";
    auto const bad = [&](std::string_view why) {
        return fail(errc::invalid_argument, "'{}': {}; write for example oci://registry.example/team/app:1.0",
                    shown_url(url), why);
    };
    if (!url.starts_with(prefix)) return bad("not the URL of a registry");
    auto const rest = url.substr(prefix.size());
    KILN_TRY(auto place, parse_url(fmt::format("https://{}", rest)));
    if (is_this_machine(place.host)) {
        // As everybody's tools have it: what does not leave the machine needs no certificate.
        auto const port = place.port == 443 ? std::uint16_t{80} : place.port;
        place.by = scheme::http;
        place.port = port;
    }
    auto name = std::exchange(place.path, {});
    registry_place out{.origin = place.text(), .repository = {}, .reference = "latest"};
    auto const colon = name.rfind(':');
    if (auto const at = name.find('@'); at != name.npos) {
        out.reference = name.substr(at + 1);
        if (!digest_in(out.reference)) return bad("what follows '@' is no digest");
        name.resize(at);
    } else if (colon != name.npos) {
        out.reference = name.substr(colon + 1);
        if (!is_tag(out.reference)) return bad("the tag is none");
        name.resize(colon);
    }
    out.repository = name.substr(std::min<std::size_t>(1, name.size()));
    if (!is_repository(out.repository))
        return bad("the repository is no name of small letters, digits, '.', '_', '-' and '/'");
    return out;
}

registry::registry(registry_place at, shipping_options const& how)
    : at_{std::move(at)}, how_{how}, caller_{curl_for(how)} {
    auto const token = token_source{how.token_file}.read();
    if (token) token_ = *token;
    else no_token_ = {trouble::denied, std::string{token.error().message()}};
    if (!token_.empty() && token_.find(':') == token_.npos) authorization_ = authorization(token_);
}

std::string registry::path(std::string_view rest) const {
    return fmt::format("{}/v2/{}/{}", at_.origin, at_.repository, rest);
}

error registry::refused(std::string_view what, http_response const& r) const {
    auto const why = failure_of(r);
    return fail(errc::io, "{}: {}: {}: {}{}", at_.text(), what, name_of(why.what), why.detail, shipping_remedy(why));
}

http_response registry::send(http_request what) {
    auto const attempt = [&] {
        auto now = what;
        now.refused = no_token_;
        if (!authorization_.empty()) now.headers.push_back(authorization_);
        return caller_.call(std::move(now));
    };
    auto out = attempt();
    if (out.why || out.status != 401 || !answer(out.header("www-authenticate"))) return out;
    return attempt();
}

bool registry::answer(std::string const& challenge) {
    if (challenge.starts_with("Bearer ")) return fetch_token(challenge);
    bool const basic = challenge.starts_with("Basic ") && token_.find(':') != token_.npos;
    if (basic) authorization_ = authorization(token_);
    return basic;
}

// The registry says who gives out tokens; our name goes there, and only where nobody can overhear it.
bool registry::fetch_token(std::string const& challenge) {
    auto const realm = quoted(challenge, "realm");
    auto const to = parse_url(realm);
    if (!to || (to->by != scheme::https && to->by != scheme::http) || to->is_overheard()) return false;
    auto url = fmt::format("{}?service={}&scope={}", realm, escaped(quoted(challenge, "service")),
                           escaped(quoted(challenge, "scope")));
    http_request what{.url = std::move(url), .most = most_json};
    if (token_.find(':') != token_.npos) what.headers.push_back(authorization(token_));
    auto const r = caller_.call(std::move(what));
    if (!is_good(r)) return false;
    auto const j = json::parse(base::as_text(r.body), nullptr, false);
    if (!j.is_object()) return false;
    auto const given = j.contains("token") ? j["token"] : j.value("access_token", json{});
    // Would end a header line and begin another.
    if (!given.is_string() || given.get_ref<std::string const&>().find_first_of("\r\n") != std::string::npos)
        return false;
    authorization_ = "Authorization: Bearer " + given.get<std::string>();
    return true;
}

result<bool> registry::has_blob(digest const& of) {
    auto const r = send({.method = "HEAD", .url = path("blobs/" + digest_text(of))});
    if (is_good(r)) return true;
    if (is_absent(r)) return false;
    return refused("a look at what is there", r);
}

// Where the registry wants it: on itself, so that who we are is told to nobody else.
result<std::string> registry::upload_url(http_response const& r) const {
    auto out = r.header("location");
    if (out.starts_with('/')) out = at_.origin + out;
    if (!out.starts_with(at_.origin + "/"))
        return fail(errc::forbidden, "{}: wants the bundle to be sent elsewhere: '{}'", at_.text(),
                    clean_text(shown_url(out)));
    return out;
}

result<void> registry::put_blob(digest const& of, std::shared_ptr<base::bytes const> data) {
    auto const begun = send({.method = "POST", .url = path("blobs/uploads/"), .body = std::make_shared<base::bytes>()});
    if (!is_good(begun)) return refused("a new upload", begun);
    KILN_TRY(auto url, upload_url(begun));
    url += fmt::format("{}digest={}", url.find('?') == url.npos ? "?" : "&", escaped(digest_text(of)));
    auto const done = send({.method = "PUT",
                            .url = std::move(url),
                            .headers = {"Content-Type: application/octet-stream"},
                            .body = std::move(data)});
    if (!is_good(done)) return refused("an upload", done);
    return {};
}

result<shipment> registry::push(base::bytes bundle, std::string_view title) {
    if (digest_in(at_.reference))
        return fail(errc::invalid_argument, "{}: a digest is what comes of a push; name a tag", at_.text());
    shipment out{.of = base::sha256_of(base::byte_span{bundle})};
    auto const size = bundle.size();
    KILN_TRY(out.was_there, has_blob(out.of));
    if (!out.was_there) {
        KILN_CHECK(put_blob(out.of, std::make_shared<base::bytes const>(std::move(bundle))));
    }
    auto const config = base::sha256_of(empty_config);
    KILN_TRY(auto const has_config, has_blob(config));
    if (!has_config) {
        KILN_CHECK(put_blob(config, bytes_of(empty_config)));
    }
    auto const manifest = manifest_of(out.of, size, title);
    auto const r = send({.method = "PUT",
                         .url = path("manifests/" + at_.reference),
                         .headers = {fmt::format("Content-Type: {}", manifest_type)},
                         .body = bytes_of(manifest)});
    if (!is_good(r)) return refused("the manifest", r);
    auto by_digest = at_;
    by_digest.reference = digest_text(base::sha256_of(manifest));
    out.for_ever = by_digest.text();
    return out;
}

result<base::bytes> registry::pull() {
    auto manifest = send({.url = path("manifests/" + at_.reference),
                          .headers = {fmt::format("Accept: {}", manifest_type)},
                          .most = most_json});
    if (is_absent(manifest)) return fail(errc::not_found, "{}: there is nothing of that name", at_.text());
    if (!is_good(manifest)) return refused("the manifest", manifest);
    auto const named = digest_in(at_.reference);
    if (named && base::sha256_of(base::byte_span{manifest.body}) != *named)
        return fail(errc::corrupt, "{}: the manifest is not the one of that digest", at_.text());
    auto const wanted = layer_of(manifest.body, how_.most_bytes);
    if (!wanted) return fail(wanted.error().code(), "{}: {}", at_.text(), wanted.error().message());
    // Registries send one elsewhere for the bytes: they are known by their digest.
    auto blob = send({.url = path("blobs/" + digest_text(wanted->of)),
                      .most = static_cast<std::size_t>(wanted->bytes),
                      .follow = true});
    if (!is_good(blob)) return refused("the bundle", blob);
    if (blob.body.size() != wanted->bytes || base::sha256_of(base::byte_span{blob.body}) != wanted->of)
        return fail(errc::corrupt, "{}: the bytes are not those that the manifest names", at_.text());
    return std::move(blob.body);
}

}  // namespace kiln::remote
