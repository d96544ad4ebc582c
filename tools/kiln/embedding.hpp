// SPDX-License-Identifier: Apache-2.0
// Units as C++ source, for a program to carry: what kiln_add_kernels compiles into a target. Each unit has its text and the headers
// that were read, or, images only, just the name a bundle knows it by. No directory of this machine is in it.
#pragma once

#include "engine/engine_state.hpp"

namespace kiln::cli {

// The unit as a program has it: with what those who made these artifacts read of its own headers, beside its source, in its include
// directories and at absolute paths, and where they looked in vain. The toolkit's stay with the toolkit.
[[nodiscard]] result<unit> as_carried(engine::state& s, unit const& u, std::vector<artifact_ptr> const& made);

struct embedded_unit {
    std::string function;
    unit what;
};

struct embedding {
    std::string name;    // of the namespace, and of the header
    std::string bundle;  // to put inside; empty: none
    std::vector<embedded_unit> units;
};
// The header that declares the functions: <name>.hpp.
[[nodiscard]] std::string header_beside(std::string const& file, std::string_view name);
// An error where such a header is there and was not made here.
[[nodiscard]] result<void> check_header(std::string const& header);
// Writes `file` (C++), `file`.texts, which it takes in, and the header.
[[nodiscard]] result<void> write_embedding(std::string const& file, embedding const& what);

}  // namespace kiln::cli
