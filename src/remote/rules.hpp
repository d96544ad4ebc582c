// SPDX-License-Identifier: Apache-2.0
// What a remote's settings come to when the files they name are read: who is believed there, and who signs. Blocks on files.
#pragma once

#include "remote/client.hpp"

namespace kiln::remote {

// Who is believed there: its keys are read.
[[nodiscard]] result<trust> trust_of(remote_options const& o);
[[nodiscard]] result<client_rules> make_rules(remote_options const& o, put_rule rule);

}  // namespace kiln::remote
