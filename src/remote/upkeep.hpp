// SPDX-License-Identifier: Apache-2.0
// What people do with all that a server has: look through it, check it, throw old things away. Blocks. Redis, Valkey and S3 can be asked
// for what they have; for servers of files there is the folder on their disk; the rest have ways of their own.
#pragma once

#include "remote/remote_tier.hpp"

namespace kiln::remote {

// In a folder others may have their things under names like ours: those are never removed.
enum class kind_of_object { packet, foreign };

struct kept_object {
    std::string key;  // as the server has it, or a path
    digest name{};    // which that is to us
    std::optional<std::int64_t>
        age{};  // seconds since it was used (Redis) or written; nothing: the server does not say
    std::uint64_t bytes = 0;
    kind_of_object what = kind_of_object::packet;
};

struct checked_object {
    std::optional<miss> why{};  // nothing: sound, or gone meanwhile
    // Each once: who signed it, and where it is not believed, or the server is, whom it names.
    std::vector<store::key_id> signers{};
    bool is_probe = false;  // what 'kiln doctor' left
};

class upkeep {
public:
    // errc::unsupported where the server cannot be asked: the message names its own way.
    [[nodiscard]] static result<upkeep> open(remote_options const& options);
    // The folder where a server of files keeps `layout=subdirs`. Options without a namespace: of any.
    [[nodiscard]] static upkeep of_folder(std::filesystem::path folder, remote_options const& options);

    upkeep(upkeep&&) noexcept;
    ~upkeep();

    // Each once. errc::io where the server does not come to an end.
    [[nodiscard]] result<std::vector<kept_object>> list();
    // errc::forbidden for what is not Kiln's.
    [[nodiscard]] result<void> remove(kept_object const& what);
    // Everything a reader would check, and that it lies where somebody would look for it. What 'kiln doctor' leaves on servers that let
    // nobody remove is sound.
    [[nodiscard]] result<checked_object> check(kept_object const& what);

private:
    struct state;
    explicit upkeep(std::unique_ptr<state> s);
    std::unique_ptr<state> state_;
};

}  // namespace kiln::remote
