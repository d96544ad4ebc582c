// SPDX-License-Identifier: Apache-2.0
// A shared object in this process: opened once, never closed, identified by what is loaded and not by what lies on disk.
#pragma once

#include "base/bytes.hpp"
#include "base/watched_load.hpp"
#include "cuda/library_search.hpp"

#include <functional>
#include <link.h>
#include <vector>

namespace kiln::cuda {

// Same text = same code. Used as the identity of a compiler in keys.
struct library_identity {
    std::filesystem::path file;  // for people; not part of the identity
    std::string build_id;        // lower-case hex of the GNU build id, or "sha256:" and the digest of the file
};

// Of the object that holds `address`: reads the notes of its loaded segments.
[[nodiscard]] result<library_identity> identify(void const* address);
// Of a file that is not loaded: what identify() would say if it were.
[[nodiscard]] result<library_identity> identify_file(std::filesystem::path const& file);
// The GNU build id in a run of ELF notes, in hex; empty where there is none. `align` is the segment's alignment.
[[nodiscard]] std::string build_id_in(base::byte_span notes, std::size_t align);

// Where a library says that what it needs is to be looked for, with its own place filled in.
struct run_path {
    std::vector<std::filesystem::path> before_users;  // DT_RPATH
    std::vector<std::filesystem::path> after_users;   // DT_RUNPATH, with which the other does not count
};
[[nodiscard]] result<run_path> run_path_of(std::filesystem::path const& file);

struct loaded_library {
    void* handle = nullptr;           // of dlopen
    ::link_map const* map = nullptr;  // base address (l_addr) and dynamic section (l_ld): for GOT patching
    library_identity identity;
    place from;

    [[nodiscard]] void* symbol(char const* name) const noexcept;
};

// dlopen with local binding, all symbols resolved. errc::not_found with the loader's words.
// The watcher comes before it runs, where it is loaded by this and that can be.
[[nodiscard]] result<loaded_library> open_library(candidate const& what, base::load_watcher watcher = nullptr);

// How a table asks for its entries: null when there is none. Tests give their own.
using symbol_source = std::function<void*(char const* name)>;
[[nodiscard]] symbol_source symbols_of(loaded_library const& library);

}  // namespace kiln::cuda
