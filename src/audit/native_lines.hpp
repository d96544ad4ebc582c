// SPDX-License-Identifier: Apache-2.0
//
// Native frames become lines. The recorder writes a frame of C++ as an object and an offset in it; which line that is must be asked while
// the object is still the one that ran, so `kiln audit` looks it up right after the run and keeps the answers in the recording, in
// `lines.txt`. With them native frames read like Python's: file, line, function, and the object as a fourth word.
#pragma once

#include "audit/recording.hpp"

#include <compare>
#include <map>

namespace kiln::audit {

struct native_frame {
    std::string object;
    std::uint64_t offset = 0;
    auto operator<=>(native_frame const&) const = default;
};

// Innermost first where functions were inlined; empty: nobody knows.
struct source_line {
    std::string file, function;
    int line = 0;  // 0: not known
};
using native_lines = std::map<native_frame, std::vector<source_line>>;

// Every native frame that a recording has, with no lines.
[[nodiscard]] native_lines native_frames_of(recording const& from);

// What stands in lines.txt, and back. A line that makes no sense is passed over.
[[nodiscard]] std::string to_text(native_lines const& lines);
[[nodiscard]] native_lines native_lines_from(std::string_view text);

// What `addr2line -afCi` says of the offsets in one object.
void take_addr2line(std::string_view output, std::string const& object, native_lines& to);

// Frames whose lines are known are replaced by them in all stacks.
void put_lines(native_lines const& lines, recording& to);

}  // namespace kiln::audit
