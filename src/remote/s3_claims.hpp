// SPDX-License-Identifier: Apache-2.0
//
// Leases where there are only objects: a claim is one that can only be made where none is. It cannot expire by itself, so its age
// is told by the server's own clock (Date and Last-Modified), and who finds an old one takes it over. Dearer than Redis: every look
// is a request for each name. On the reactor's thread.
#pragma once

#include "remote/curl.hpp"

#include <map>

namespace kiln::remote {

class s3_claims final : public lease_server {
public:
    struct rules {
        std::chrono::seconds life{10};
        std::chrono::seconds open_for{30};
        // Asked twice a second; written anew only so often.
        std::chrono::milliseconds renewal{3'000};
    };
    using sender = std::function<void(http_request, curl_client::answered)>;
    // `base` is where claims lie; `send` signs.
    s3_claims(std::string base, sender send, rules how);
    s3_claims(std::string base, sender send) : s3_claims{std::move(base), std::move(send), rules{}} {}

    void take(digest const& name, std::string const& token, std::function<void(lease_look)> then) override;
    void look(std::vector<digest> const& names, looked then) override;
    void renew(digest const& name, std::string const& token) override;
    void end(digest const& name, std::string const& token, done then) override;
    void mark_open(digest const& name, std::string const& token, std::string_view reason) override;

private:
    struct seen {
        lease_look what{};
        std::string version{};  // of a claim that is there, whoever's and however old
        std::string text{};
    };
    struct ours {
        std::string token;
        std::string version;
        base::time_point written;
    };
    [[nodiscard]] std::string url_of(digest const& name) const;
    [[nodiscard]] seen read(http_response const& r) const;
    void read_one(digest const& name, std::function<void(seen)> then);
    // Empty `version`: only where there is none.
    void write(digest const& name, std::string_view text, std::string const& version,
               std::function<void(http_response)> then);
    void written(digest const& name, std::string const& token, http_response const& r);
    // Null where it is not this token's any more, as far as can be known.
    [[nodiscard]] ours* held(digest const& name, std::string const& token);

    std::string base_;
    sender send_;
    rules rules_;
    std::map<digest, ours> ours_;
};

}  // namespace kiln::remote
