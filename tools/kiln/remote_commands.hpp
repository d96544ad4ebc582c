// SPDX-License-Identifier: Apache-2.0
// What the subcommands of `kiln remote` share: their arguments, and the remotes they are about.
#pragma once

#include "command.hpp"

#include "remote/remote_tier.hpp"
#include "remote/shipping.hpp"

namespace kiln::cli {

struct remote_arguments {
    bool as_json = false;
    bool dry_run = false;
    bool cache = false;
    std::string bundle;
    std::string url;
    std::string folder;
    std::string older_than;
    std::optional<std::int64_t> sample;
    std::vector<std::string> profiles;
    std::vector<std::string> archs;
    std::string output;
    std::string place;  // of a whole bundle
    std::string key;
    remote::shipping_options shipping;
};

using remote_ptr = std::shared_ptr<remote::remote_tier>;

struct chosen_remotes {
    std::vector<remote_ptr> usable;
    std::vector<remote::unusable_remote> off;
};

// Those of KILN_REMOTE, or the one whose URL is given.
[[nodiscard]] chosen_remotes remotes(std::string const& url = {}, remote::purpose what_for = remote::purpose::sharing);
// The same; one at least, and those that cannot be used are complained about.
[[nodiscard]] chosen_remotes some_remotes(std::string const& url = {},
                                          remote::purpose what_for = remote::purpose::sharing);

// Why a remote is no use now, and what to do; empty where it is.
struct plight {
    std::string why;
    std::string remedy;
};
[[nodiscard]] plight plight_of(remote::remote_tier& r, remote::failure const& why);

// Each is a subcommand, and returns its exit status.
int remote_push(remote_arguments const& a);
int remote_pull(remote_arguments const& a);
int remote_prune(remote_arguments const& a);
int remote_verify(remote_arguments const& a);

}  // namespace kiln::cli
