// SPDX-License-Identifier: Apache-2.0
// Requests over HTTP for tools: one at a time, and each is waited for.
#pragma once

#include "remote/curl.hpp"

namespace kiln::remote {

class http_caller {
public:
    explicit http_caller(curl_options how);
    ~http_caller();
    http_caller(http_caller const&) = delete;
    http_caller& operator=(http_caller const&) = delete;

    [[nodiscard]] http_response call(http_request what);

private:
    byte_server::traffic counted_;
    reactor loop_;
    curl_client curl_;
};

}  // namespace kiln::remote
