// SPDX-License-Identifier: Apache-2.0
//
// What a text can learn about itself from the compiler: what its file is called, what the file is called that includes it, and when
// it is compiled. Where it may, directories must not be hidden from the compiler, nothing be shared between sources, or nothing
// be kept. All of these answer too often rather than once too seldom: comments count, and so do pieces of a name, which macros
// can paste together, and names that are cut by a line's end.
#pragma once

#include <string_view>

namespace kiln::compile {

// __FILE__, __BASE_FILE__ and their kin, or a macro that is named after them. Pieces without an underscore and of three letters
// and less are looked for in __FILE__ alone, in which every other name ends; of two letters and less not at all.
[[nodiscard]] bool may_name_its_file(std::string_view text);
// The same of a header at `path`. Those of CUDA and CuPy have __FILE__ in macros that write messages: whole strings, which are found
// in what was made.
[[nodiscard]] bool header_may_name_its_file(std::string_view path, std::string_view text);
// __BASE_FILE__ alone: in a header it says something else in every source that includes it. Pieces of three letters and less are not
// looked for.
[[nodiscard]] bool may_name_its_source(std::string_view text);
// __DATE__, __TIME__, __TIMESTAMP__; whole, in pieces that this text has all of, or by an end for which another may have the middle.
[[nodiscard]] bool may_name_the_time(std::string_view text);
// The same of a header at `path`. Those of CUDA and CuPy paste names of their own between underscores.
[[nodiscard]] bool header_may_name_the_time(std::string_view path, std::string_view text);

}  // namespace kiln::compile
