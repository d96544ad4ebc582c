// SPDX-License-Identifier: Apache-2.0
//
// What CUDA's and CuPy's headers do with the name of a file, letter for letter. They hand it on whole: into a message, where it is found in
// what was made or in the log, or to who says "source_location". They also put two underscores in front of names of their own.
//
// What a header or its folder is called says nothing about whose it is: anybody has a cuda_utils.h, and a folder cub/. So all headers are
// looked at in the same way, and what is known to be harmless is left out by what it says. A phrase that is not known here, of a CUDA to come,
// costs hits where folders change, and nothing else; the unit test over the toolkit's headers names it.
#pragma once

#include <string>
#include <string_view>

namespace kiln::compile {

// A text whose lines have been joined, without those phrases and with blanks only where they part words.
[[nodiscard]] std::string without_known_phrases(std::string_view text);

}  // namespace kiln::compile
