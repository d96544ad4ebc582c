// SPDX-License-Identifier: Apache-2.0
// Who answers a compiler that asks the file system for headers: include_capture for units, look_capture for the compiles of
// other programs. See open_hook.hpp.
#pragma once

#include <cstdio>
#include <string>

namespace kiln::compile {

class header_answers {
public:
    // fopen(path, "r") as the compiler asked for it; null with errno set when there is no such file.
    virtual std::FILE* open(std::string const& path) = 0;
    // What a path the compiler asks about is on this machine.
    [[nodiscard]] virtual std::string real_path(std::string const& path) const = 0;

protected:
    ~header_answers() = default;
};

}  // namespace kiln::compile
