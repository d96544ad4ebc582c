// SPDX-License-Identifier: Apache-2.0
// Bytes and leases on Redis or Valkey, over one connection. A user there needs GET MGET SET EVAL DEL PEXPIRE PING on kiln:1:*,
// one who only reads GET MGET PING.
#pragma once

#include "remote/redis_link.hpp"

namespace kiln::remote {

class redis_server final : public byte_server, public lease_server {
public:
    enum class duty { bytes, leases };  // leases: only these, at options.lease_at
    redis_server(reactor& loop, remote_options const& options, duty what = duty::bytes);

    void get(std::vector<digest> const& names, each then) override;
    void put(digest const& name, std::shared_ptr<base::bytes const> packet, put_rule rule,
             std::function<void(put_answer)> then) override;
    void remove(digest const& name, std::function<void(failure)> then) override;
    void ping(std::function<void(failure)> then) override;
    [[nodiscard]] lease_server* leases() noexcept override { return this; }
    [[nodiscard]] std::size_t batch() const noexcept override { return 256; }
    void close() noexcept override { link_.close(); }
    void describe(std::function<void(server_facts)> then) override;

    void take(digest const& name, std::string const& token, std::function<void(lease_look)> then) override;
    void look(std::vector<digest> const& names, looked then) override;
    void renew(digest const& name, std::string const& token) override;
    void end(digest const& name, std::string const& token, done then) override;
    void mark_open(digest const& name, std::string const& token, std::string_view reason) override;

    // Names of all objects, a page at a time; `cursor` "0" begins and ends.
    struct page {
        failure why{};
        std::string cursor = "0";
        std::vector<std::string> keys{};
    };
    void scan(std::string const& cursor, std::function<void(page)> then);
    struct idleness {
        failure why{};
        bool gone = false;
        std::optional<std::int64_t> seconds{};  // nothing: a policy that counts uses, or a user who may not ask
    };
    void idle(std::string const& key, std::function<void(idleness)> then);

private:
    void get_some(std::vector<digest> const& names, each then);
    void get_singly(std::vector<digest> const& names, each then);
    void get_one(digest const& name, std::function<void(got)> then);

    remote_options options_;
    terms terms_;
    redis_link link_;
};

}  // namespace kiln::remote
