// SPDX-License-Identifier: Apache-2.0
// What to do about a remote that does not do what it should: said by doctor and by 'kiln remote'.
#pragma once

#include "remote/remote_tier.hpp"

namespace kiln::cli {

// It does not answer, or not as it should.
[[nodiscard]] std::string remedy_for(remote::remote_options const& o, remote::failure const& why);
// `why` as try_writing() and try_lease() say it: what kind of trouble, and the server's words.
[[nodiscard]] std::string remedy_for_writing(remote::remote_options const& o, std::string_view why);
[[nodiscard]] std::string remedy_for_leases(remote::remote_options const& o, std::string_view why);

}  // namespace kiln::cli
