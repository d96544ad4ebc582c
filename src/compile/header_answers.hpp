// SPDX-License-Identifier: Apache-2.0
// Who answers a compiler that asks the file system for headers: include_capture for units, look_capture for the compiles of
// other programs. See open_hook.hpp.
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

protected:
    ~header_answers() = default;
};

}  // namespace kiln::compile
