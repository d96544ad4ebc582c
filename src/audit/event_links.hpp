// SPDX-License-Identifier: Apache-2.0
//
// Events that are links. Once a program has begun the companion opens no file, whose descriptor others might meet: it leaves a link for each
// event, and `kiln audit` puts them into the files while the program runs, so that they never are many, and after its end.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>

namespace kiln::audit {

enum class gathering { under_way, last };

// Each into the file of its process. One that makes no sense stays. Where a file cannot be written they stay, too: the last time there is
// then a mark beside it that something is missing. What cannot be removed goes into `stuck`, and what is in there was put into its file
// already. How many were.
std::size_t gather_event_links(std::filesystem::path const& folder, gathering when,
                               std::set<std::filesystem::path>& stuck);

}  // namespace kiln::audit
