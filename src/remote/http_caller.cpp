// SPDX-License-Identifier: Apache-2.0
#include "remote/http_caller.hpp"

#include <future>

namespace kiln::remote {

http_caller::http_caller(curl_options how) : curl_{loop_, std::move(how), counted_} {}

http_caller::~http_caller() {
    loop_.stop([this] { curl_.close(); });
}

http_response http_caller::call(http_request what) {
    auto const there = std::make_shared<std::promise<http_response>>();
    auto const request = std::make_shared<http_request>(std::move(what));
    bool const posted = loop_.post([this, request, there] {
        curl_.send(std::move(*request), [there](http_response r) { there->set_value(std::move(r)); });
    });
    if (posted) return there->get_future().get();
    http_response none;
    none.why = {trouble::library, "no thread is left"};
    return none;
}

}  // namespace kiln::remote
