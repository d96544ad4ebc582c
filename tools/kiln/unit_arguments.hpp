// SPDX-License-Identifier: Apache-2.0
// The arguments that say what to compile and how: shared by compile, build and explain.
#pragma once

#include "command.hpp"

namespace kiln::cli {

struct unit_arguments {
    std::vector<std::string> files;
    std::vector<std::string> archs;
    std::vector<std::string> names;
    std::vector<std::string> defines;
    std::vector<std::string> undefines;
    std::vector<std::string> includes;
    std::vector<std::string> options;
    std::vector<std::string> uncached_options;
    std::vector<std::string> exports;
    std::string standard;
    std::string kind;  // empty: a cubin, or PTX for a virtual architecture
    std::string licence;
    int jobs = 0;

    enum class files_are { required, optional };
    void add_to(CLI::App& app, files_are need = files_are::required);
    // One per file; errors name the file.
    [[nodiscard]] result<std::vector<unit>> units() const;
    // Every architecture asked for, or this machine's. Also by CMake's words: 80-real, 90-virtual, native, all, all-major; and 80-90
    // for all of them that the compiler knows.
    [[nodiscard]] result<std::vector<target>> targets() const;
    // Settings for the engine: --jobs.
    [[nodiscard]] engine_options engine() const;
};

}  // namespace kiln::cli
