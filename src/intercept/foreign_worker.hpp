// SPDX-License-Identifier: Apache-2.0
// A kiln-worker that compiles for a program under `kiln run`. It is connected to that program, not to whoever started it.
#pragma once

namespace kiln::intercept {

// Says hello, then one product for each job, until the program hangs up or asks for nothing for a while: the exit status.
[[nodiscard]] int serve_foreign(int socket);

}  // namespace kiln::intercept
