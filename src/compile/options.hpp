// SPDX-License-Identifier: Apache-2.0
//
// NVRTC's options, each with a decided role in the key; and which options of ptxas and nvJitLink may be passed on. An option
// that is not in a table, or whose effect cannot be part of a key (it reads or writes a file, or overrules the target), is
// refused by name.
#pragma once

#include "base/check.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::compile {

enum class option_role {
    keyed,     // changes the result; only the last value counts, and the order among different options does not
    repeated,  // changes the result; every occurrence counts, in order
    macro,     // -D, -U: order counts per macro only; of all of them where a name is not plain
    include,   // -I: becomes an include directory; what is read counts, not the path
    unkeyed,   // changes messages or the compiler's own resources, never the result
    refused,   // not allowed; the row says why
};

enum class option_value { none, optional, required };

struct option_row {
    std::string_view name;   // canonical, long: "--fmad"
    std::string_view alias;  // "-fmad", or empty
    option_value value;
    option_role role;
    std::string_view note;  // for refused: why and what to do instead; for keyed with a value: an example value
    std::string_view alias2 = {};
};

[[nodiscard]] std::span<option_row const> option_table() noexcept;

struct normalized_options {
    std::vector<std::string> keyed;         // canonical spelling and order: goes into the key
    std::vector<std::string> arguments;     // what NVRTC is given, without architecture, kind and include paths
    std::vector<std::string> include_dirs;  // from -I, in order
    bool debug = false;                     // -G or -lineinfo: paths are part of the result
};

[[nodiscard]] result<normalized_options> normalize(std::span<std::string const> options);

// Of unit::uncached_options: what belongs to the target, to the kind of artifact or to the workers is refused there too. What the
// table does not know passes.
[[nodiscard]] result<void> check_uncached_options(std::span<std::string const> options);

// nvJitLink's options go to it as they are, and all of them into the key; errc::unsupported for one whose effect a key cannot have.
[[nodiscard]] result<void> check_link_options(std::span<std::string const> options);

}  // namespace kiln::compile
