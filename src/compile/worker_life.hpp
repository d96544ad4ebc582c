// SPDX-License-Identifier: Apache-2.0
// What every worker process does with its life, whoever it compiles for.
#pragma once

namespace kiln::compile {

// Out of the way of terminals, mounts and core dumps, first to go when memory runs out, and gone with its parent.
void settle_in_as_worker();

// A compile cannot be interrupted and must not outlive whoever asked for it: the process ends when the other end of `socket` does.
void end_with_peer(int socket);

}  // namespace kiln::compile
