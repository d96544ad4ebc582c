// SPDX-License-Identifier: Apache-2.0
//
// Which file the loader would give a library that asks for another one by its bare name, found out without loading either: what
// is loaded under that name already, else what is found in the library's run path, the user's and the loader's list, in the
// loader's order. Safe from any thread.
#pragma once

#include <filesystem>
#include <string>

namespace kiln::cuda {

// Empty: it would find none. `who` is the file of the library that asks. Whoever loaded the library that this is a part of is taken
// to load that one, too.
[[nodiscard]] std::filesystem::path loaders_choice(std::filesystem::path const& who, std::string const& name);

// The object that answers to this name in this process; empty when none does yet.
[[nodiscard]] std::filesystem::path loaded_under(std::string const& name);

}  // namespace kiln::cuda
