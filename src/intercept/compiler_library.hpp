// SPDX-License-Identifier: Apache-2.0
//
// The NVRTC or nvJitLink file that another program uses: what it is, and how it is opened past the loader's hook, in that
// program or in a worker. Its functions are called by name: versions differ in what there is.
#pragma once

#include "base/config.hpp"
#include "base/file_state.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kiln::intercept {

class compiler_library {
public:
    // Null: there is no such function, or no library any more.
    [[nodiscard]] virtual void* symbol(char const* name) = 0;

    template <class... Arguments>
    int call(char const* name, int without, Arguments... arguments) {
        auto* const f = reinterpret_cast<int (*)(Arguments...)>(symbol(name));
        return f == nullptr ? without : f(arguments...);
    }

protected:
    ~compiler_library() = default;
};

// What files were found to be is remembered in the cache directory: a compiler is large and read by every program.
void remember_compilers(base::config const& settings);

// Of NVRTC: those the loader of this process gives it, or those beside it, whatever the loader would do.
enum class builtins { in_use, beside };
// File name, build id and, for NVRTC, the built-ins by content; empty when it cannot be known.
[[nodiscard]] std::string toolchain_of(std::string const& path, builtins which = builtins::in_use);

struct opened_compiler {
    void* handle = nullptr;  // of dlopen; null: it cannot be opened
    // Every file it opens is seen while a capture lives, and it is the library that `toolchain` speaks of.
    bool is_watched = false;
    std::vector<void*> others = {};  // that were opened for it
};
[[nodiscard]] opened_compiler open_compiler(std::string const& path, std::string_view toolchain);
// The library and nothing else, for a program that has shut itself in.
[[nodiscard]] opened_compiler open_unseen(std::string const& path, base::file_state const& file);
// Nothing of it is in use any more.
void close_compiler(opened_compiler const& opened);

}  // namespace kiln::intercept
