// SPDX-License-Identifier: Apache-2.0
//
// What a unit carries of its own directories when it leaves the machine that it was built on (unit::carried), and the directories that it
// then has. Each thing has a place: "s/a.h" beside the source, "i0/b.h" in the first include directory, or an absolute path.
//
//     s/a.h, text      a header that was read
//     #2 i0/b.h        of the files that say what it says it is the second one
//     !i0/c.h, !i1/d/  was looked for in vain; was no folder
//     =i0/lib/, names  what there was in a folder that was looked in
//     !                this is all there is to know: of anything else nobody can tell what lay there
//
// `kiln build --embed` writes it; looking headers up in it is for includes.hpp.
#pragma once

#include "compile/includes.hpp"

#include <filesystem>

namespace kiln::compile {

// Where the directories of a unit that carries its headers seem to lie.
inline constexpr std::string_view carried_root = "/.kiln/carried/";

// The directories of a unit on this machine, or of what it carries; toolkit and real_paths are the caller's to set.
[[nodiscard]] include_roots roots_of(kiln::unit const& u);
// The other way round: what a unit carries that is to have these.
[[nodiscard]] std::vector<carried_header> carried_of(include_roots const& roots);
// How many include directories it has, apart from those in its options.
[[nodiscard]] std::size_t count_directories(kiln::unit const& u);

// The place of a dependency; empty for the toolkit's, which is not carried.
[[nodiscard]] std::string place_of(dependency const& d);

// The names in a folder, as short digests, one in each line: of folders, and of files that are called as headers are, which are few and
// change seldom. Nothing is told of others, nor of programs. Empty where there is no such folder; nullopt where it cannot be read.
[[nodiscard]] std::optional<std::string> names_in(std::filesystem::path const& folder);
// Whether these tell that nothing can have been at a place.
[[nodiscard]] bool had_no_such_name(folder_names const& names, std::string_view place);

}  // namespace kiln::compile
