// SPDX-License-Identifier: Apache-2.0
// Where a bucket is and who we are there: attributes of the remote, else AWS_* of the environment.
#pragma once

#include "remote/settings.hpp"

namespace kiln::remote {

struct s3_access {
    std::string base;  // https://host/bucket/prefix
    std::string region;
    std::string id, secret, session;  // never shown
    std::string why;                  // not empty: it cannot be used
};
[[nodiscard]] s3_access s3_access_of(remote_options const& options);

// What `Authorization: Basic` takes.
[[nodiscard]] std::string base64(std::string_view text);

}  // namespace kiln::remote
