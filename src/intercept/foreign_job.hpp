// SPDX-License-Identifier: Apache-2.0
//
// A compile of another program as a job for a worker, and what comes back. Both cross a process boundary: the frames are those
// of docs/formats/worker-protocol.md. A job is also what a recording keeps of a request.
#pragma once

#include "compile/viewpoint.hpp"
#include "intercept/real_program.hpp"

namespace kiln::intercept {

using compile::viewpoint;

struct foreign_job {
    std::string library;    // the program's own NVRTC
    std::string toolchain;  // what it must be
    std::string directory;  // that relative names start from
    viewpoint seen_from;
    foreign_program program;
    foreign_call call;
};

[[nodiscard]] base::bytes encode(foreign_job const& what);
[[nodiscard]] base::bytes encode(foreign_product const& what);
// errc::corrupt for anything encode() did not write.
[[nodiscard]] result<foreign_job> decode_foreign_job(base::byte_span data);
[[nodiscard]] result<foreign_product> decode_foreign_product(base::byte_span data);

}  // namespace kiln::intercept
