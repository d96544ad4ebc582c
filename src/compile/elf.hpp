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

// All that a cubin says, in bytes to compare: names as without_compile_marks has them, and nothing of where things lie in the file.
// Two compiles of one text by one compiler have the same. Empty for what is no cubin, or one that is cut off.
[[nodiscard]] base::bytes cubin_essence(base::byte_span image);

// The same of an artifact of any kind: of PTX the text without those marks, of what is not known the image itself.
[[nodiscard]] base::bytes image_essence(artifact const& a);

// Names of the .entry functions of PTX text.
[[nodiscard]] std::vector<std::string> ptx_entries(std::string_view ptx);
// Whether a text of PTX declares a __constant__ variable of this name.
[[nodiscard]] bool has_ptx_constant(std::string_view ptx, std::string_view name);

}  // namespace kiln::compile
