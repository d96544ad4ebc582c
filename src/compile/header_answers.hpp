// SPDX-License-Identifier: Apache-2.0
// Who answers a compiler that asks the file system for headers: include_capture for units (and precompiling before
// it), look_capture for the compiles of other programs. See open_hook.hpp.
#pragma once

#include <cstdio>
#include <string>
#include <sys/stat.h>

namespace kiln::compile {

class header_answers {
public:
    // fopen(path, "r") as the compiler asked for it; null with errno set when there is no such file.
    virtual std::FILE* open(std::string const& path) = 0;
    // stat(path) as the compiler asked for it; -1 with errno set when there is nothing.
    virtual int stat(std::string const& path, struct ::stat* out) = 0;
    // fopen with a mode that writes.
    virtual std::FILE* create(std::string const& path, char const* mode) { return std::fopen(path.c_str(), mode); }
    // A file in which there is and will be nothing but zeros: what is mapped of it need not be a file's.
    [[nodiscard]] virtual bool is_blank(int) const { return false; }

protected:
    ~header_answers() = default;
};

}  // namespace kiln::compile
