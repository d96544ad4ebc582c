// SPDX-License-Identifier: Apache-2.0
// What every worker process does with its life, whoever it compiles for.
#pragma once

namespace kiln::compile {

// Out of the way of terminals, mounts and core dumps, first to go when memory runs out, and gone with its parent.
void settle_in_as_worker();
// Whether this process did.
[[nodiscard]] bool is_worker() noexcept;

// A compile cannot be interrupted and must not outlive whoever asked for it: the process ends when the other end of `socket` does.
void end_with_peer(int socket);
// The same by a signal (SIGIO): without a second thread libc takes no locks, which is a hundredth of a compile. One socket in a process.
void end_with_peer_by_signal(int socket);

}  // namespace kiln::compile
