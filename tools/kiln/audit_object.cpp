// SPDX-License-Identifier: Apache-2.0
#include "audit_object.hpp"

#include "base/files.hpp"

#include <array>
#include <fcntl.h>
#include <unistd.h>

namespace kiln::cli {

namespace {

// Whether what the program wrote last was a whole line. Of a pipe nobody knows.
bool is_at_line_start() {
    auto const at = ::lseek(STDOUT_FILENO, 0, SEEK_CUR);
    if (at <= 0) return at == 0;
    auto const file = base::open_file("/proc/self/fd/1", O_RDONLY | O_NONBLOCK);
    char last = 0;
    return file && ::pread(file->get(), &last, 1, at - 1) == 1 && last == '\n';
}

}  // namespace

// One line, also to readers who end lines at U+0085, U+2028 and U+2029 (Python's splitlines): they stand in strings alone, where they may
// be written so.
std::string as_one_line(std::string object) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> ends{
        {{"\xC2\x85", "\\u0085"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}}};
    for (auto const& [end, written] : ends) {
        for (auto at = object.find(end); at != object.npos; at = object.find(end, at))
            object.replace(at, end.size(), written);
    }
    return object + "\n";
}

void print_last_line(std::string const& line, recorded when) {
    print((when == recorded::now && !is_at_line_start() ? "\n" : "") + line);
    finish_output();
}

}  // namespace kiln::cli
