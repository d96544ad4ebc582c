// SPDX-License-Identifier: Apache-2.0
//
// Whole bundles to and from where releases are kept: an OCI registry, any HTTP server that takes PUT, S3. For tools: everything
// blocks. What came is checked by its digest where the place tells one; that it is a bundle, and whose, is for the caller to check
// before he keeps it.
#pragma once

#include "remote/settings.hpp"

namespace kiln::remote {

struct shipping_options {
    std::filesystem::path token_file{};  // else KILN_REMOTE_TOKEN; a bearer token or "user:password"
    std::filesystem::path ca{};
    std::string region{}, endpoint{};  // of S3; else AWS_*
    std::filesystem::path credentials_file{};
    std::chrono::milliseconds connect_timeout{10'000};
    std::chrono::milliseconds timeout{600'000};
    std::chrono::seconds stall{30};  // nobody waits ten minutes for a byte in a second
    std::uint64_t most_bytes = std::uint64_t{2} << 30;
};

struct shipment {
    digest of;
    bool was_there = false;  // only its name was new, if that
    std::string for_ever{};  // of a registry: the name by digest, which no later push takes away
};
// `to`: oci://host/repository:tag, https://host/path/app.kiln, s3://bucket/path/app.kiln. `title` is a name for people.
[[nodiscard]] result<shipment> ship_bundle(std::string_view to, base::bytes bundle, std::string_view title,
                                           shipping_options const& how = {});
// The same places, oci://host/repository@sha256:..., and presigned URLs, whose query is never repeated to anybody.
[[nodiscard]] result<base::bytes> fetch_bundle(std::string_view from, shipping_options const& how = {});

}  // namespace kiln::remote
