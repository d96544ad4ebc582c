// SPDX-License-Identifier: Apache-2.0
// An OCI registry as a place for bundles: one layer, an empty config, an artifact type of our own. Every registry that keeps images
// takes it.
#pragma once

#include "remote/http_caller.hpp"
#include "remote/shipping.hpp"

namespace kiln::remote {

struct registry_place {
    std::string origin;      // https://host:port; http only on this machine
    std::string repository;  // team/app
    std::string reference;   // a tag, or sha256:...
    // As people write it.
    [[nodiscard]] std::string text() const;
};
[[nodiscard]] result<registry_place> parse_registry(std::string_view url);

class registry {
public:
    registry(registry_place at, shipping_options const& how);

    [[nodiscard]] result<shipment> push(base::bytes bundle, std::string_view title);
    [[nodiscard]] result<base::bytes> pull();

private:
    // Says who we are as often as asked to: once.
    [[nodiscard]] http_response send(http_request what);
    // False: the challenge cannot be met.
    [[nodiscard]] bool answer(std::string const& challenge);
    [[nodiscard]] bool fetch_token(std::string const& challenge);
    [[nodiscard]] std::string path(std::string_view rest) const;
    [[nodiscard]] error refused(std::string_view what, http_response const& r) const;
    [[nodiscard]] result<bool> has_blob(digest const& of);
    [[nodiscard]] result<void> put_blob(digest const& of, std::shared_ptr<base::bytes const> data);
    [[nodiscard]] result<std::string> upload_url(http_response const& r) const;

    registry_place at_;
    shipping_options how_;
    http_caller caller_;
    failure no_token_;           // set: it cannot be read, and nobody is asked without it
    std::string token_;          // what we were given to say; never shown
    std::string authorization_;  // the header that was accepted last
};

}  // namespace kiln::remote
