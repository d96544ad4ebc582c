// SPDX-License-Identifier: Apache-2.0
// Reads a cubin: kernels with their resource numbers, and initial values of constants. Bounds-checked: bytes may be hostile.
#pragma once

#include "base/bytes.hpp"
#include "base/check.hpp"

#include <kiln/artifact.hpp>

#include <span>

namespace kiln::compile {

struct cubin_contents {
    std::vector<kernel_info> kernels;      // name == lowered; in order of name
    std::vector<constant_info> constants;  // those of `exports` that are defined
};

// `sm` is the architecture number: from sm_90 on, the driver's reserved 1 KiB is not counted as shared memory.
[[nodiscard]] result<cubin_contents> read_cubin(base::byte_span image, int sm, std::span<std::string const> exports);

// __device__ and __constant__ variables, as they are named in the image, in order of name. Empty for what is no cubin.
[[nodiscard]] std::vector<std::string> cubin_variables(base::byte_span image);

// Names of the .entry functions of PTX text.
[[nodiscard]] std::vector<std::string> ptx_entries(std::string_view ptx);

}  // namespace kiln::compile
