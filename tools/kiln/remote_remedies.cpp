// SPDX-License-Identifier: Apache-2.0
#include "remote_remedies.hpp"

namespace kiln::cli {

namespace {

std::string remedy_for_tls(remote::remote_options const& o, std::string_view detail) {
    // What OpenSSL makes of an answer in clear text.
    if (detail.find("wrong version number") != detail.npos)
        return fmt::format("it speaks no TLS there: write {}://, or correct the port",
                           o.at.is_redis() ? "redis" : "http");
    return "name with ca=FILE who vouches for its certificate, which must be good today and for this name";
}

bool is_full(std::string_view why) { return why.starts_with(remote::name_of(remote::trouble::full)); }

std::string remedy_for_full(remote::remote_options const& o) {
    return o.at.is_redis() ? "give it more memory (maxmemory), or let it forget: maxmemory-policy allkeys-lru"
                           : "give it more room, or remove what is old";
}

}  // namespace

std::string remedy_for(remote::remote_options const& o, remote::failure const& why) {
    using remote::trouble;
    bool const s3 = o.at.by == remote::scheme::s3;
    switch (why.what) {
        case trouble::denied:
            return s3 ? "name who may read and list the bucket: AWS_ACCESS_KEY_ID and so on, or credentials-file=FILE"
                      : "give it a token that is let in: token-file=FILE, or KILN_REMOTE_TOKEN";
        case trouble::tls: return remedy_for_tls(o, why.detail);
        case trouble::library: return "install libcurl4";
        case trouble::protocol:
        case trouble::cut:
            if (s3) return "make the bucket, or correct its name and endpoint=";
            return o.at.is_redis() ? "something else is there, or it wants TLS: rediss://"
                                   : "something else is there, or it wants TLS: https://; correct the URL";
        case trouble::server:
            if (why.detail.find("max number of clients") != why.detail.npos)
                return "let it have more clients (maxclients), or close those that do nothing (timeout); until then "
                       "everything is compiled here";
            break;
        default: break;
    }
    auto const tls = o.at.by == remote::scheme::redis_tls ? ", or write redis:// if it has no TLS" : "";
    return fmt::format("start the server or correct its address{}; until then everything is compiled here", tls);
}

std::string remedy_for_writing(remote::remote_options const& o, std::string_view why) {
    if (is_full(why)) return remedy_for_full(o);
    if (o.at.is_redis()) return "let this user SET, or add read-only";
    if (o.at.by == remote::scheme::s3) return "let this user put objects into the bucket, or add read-only";
    if (o.layout == remote::layout::bazel) return "let this user PUT there, or add read-only";
    if (why.find("HTTP 400") != why.npos)
        return "it does not understand what it is sent: add layout=bazel if it is a bazel-remote, else correct the URL";
    return "let this user PUT there (nginx: 'dav_methods PUT; create_full_put_path on;'), or add read-only";
}

std::string remedy_for_leases(remote::remote_options const& o, std::string_view why) {
    if (is_full(why)) return remedy_for_full({.at = o.lease_at.value_or(o.at)});
    if (o.leases == remote::leasing::elsewhere)
        return "start it, let us in with lease-token-file=FILE, let this user SET and EVAL there, or add lease=none";
    return o.at.is_redis() ? "let this user SET and EVAL, or add lease=none"
                           : "let this user put objects below claims/, or add lease=none";
}

}  // namespace kiln::cli
