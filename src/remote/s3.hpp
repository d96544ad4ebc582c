// SPDX-License-Identifier: Apache-2.0
// Where a bucket is and who we are there: attributes of the remote, else AWS_* of the environment.
#pragma once

#include "remote/curl.hpp"
#include "remote/settings.hpp"

namespace kiln::remote {

struct s3_access {
    std::string base;  // https://host/bucket/prefix
    std::string region;
    std::string id, secret, session;  // never shown
    std::string why;                  // not empty: it cannot be used
};
[[nodiscard]] s3_access s3_access_of(remote_options const& options);
// The same without a file of credentials, which may lie on a disk that hangs: where, and not who.
[[nodiscard]] s3_access s3_place_of(remote_options const& options);
// How libcurl signs for it, and the headers that it needs for that: without the digest of the body its signature is wrong.
[[nodiscard]] std::string signing_scheme(s3_access const& who);
void add_s3_headers(s3_access const& who, http_request& what);
void sign_with(s3_access const& who, curl_options& how, http_request& what);

// What `Authorization: Basic` takes.
[[nodiscard]] std::string base64(std::string_view text);

}  // namespace kiln::remote
