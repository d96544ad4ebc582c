// SPDX-License-Identifier: Apache-2.0
#include "remote/http_server.hpp"

namespace kiln::remote {
std::unique_ptr<byte_server> make_http_server(reactor&, remote_options const&) { return nullptr; }
}  // namespace kiln::remote
