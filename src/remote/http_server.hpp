// SPDX-License-Identifier: Apache-2.0
// Bytes on anything that takes PUT: nginx with DAV and its like (layout=subdirs), bazel-remote (layout=bazel), S3. Through
// libcurl, which is opened at run time, on the reactor's thread. Only S3 keeps leases; for the others `lease=` says who does.
#pragma once

#include "remote/byte_server.hpp"
#include "remote/reactor.hpp"
#include "remote/settings.hpp"

namespace kiln::remote {

[[nodiscard]] std::unique_ptr<byte_server> make_http_server(reactor& loop, remote_options const& options);

}  // namespace kiln::remote
