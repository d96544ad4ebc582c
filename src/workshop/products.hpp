// SPDX-License-Identifier: Apache-2.0
//
// What ships of a pack, made with Kiln's own engine and cache: needs NVRTC and nvJitLink, neither nvcc nor a GPU.
#pragma once

#include "engine/pack.hpp"
#include "store/bundle.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>

namespace kiln::workshop {

struct product_plan {
    std::vector<arch> archs;         // of the bundle that becomes part of libkiln
    std::vector<arch> archs_beside;  // for each a bundle beside it
    unsigned threads = 2;
};

struct product_report {
    std::string name;  // of the file
    std::size_t entries = 0;
    std::size_t bytes = 0;
};

// Collected first and written last. Safe from any thread while it is collected.
class product_files {
public:
    // Of both kinds of bundle.
    void set(std::string const& name, std::string const& value);
    [[nodiscard]] result<void> add(store::entry const& what);
    [[nodiscard]] result<void> add_beside(arch a, store::entry const& what);
    // A file of its own that becomes part of libkiln: FILES of kiln_pack.
    void add_file(std::string name, base::bytes data, std::size_t entries);

    struct places {
        std::filesystem::path inside, beside;
        std::string suffix = {};  // of names beside
    };
    // <inside>/<pack>.kiln and files, <beside>/<pack>-sm_90<suffix>.kiln. What is there already and the same is left alone.
    [[nodiscard]] result<std::vector<product_report>> write(std::string_view pack, places const& to) const;

private:
    struct plain_file {
        base::bytes data;
        std::size_t entries = 0;
    };
    mutable std::mutex mutex_;
    std::map<std::string, std::string> facts_;
    store::bundle_writer inside_{store::packing::where_it_pays};  // part of the library: read once, mapped by all
    std::map<arch, store::bundle_writer> beside_;
    std::map<std::string, plain_file> files_;
};

// "prims-sm_90.kiln", "prims-sm_90-cuda12.kiln"
[[nodiscard]] std::string name_beside(std::string_view pack, arch a, std::string_view suffix);

// Runs tasks on a few threads; the first error wins and the rest are skipped.
using task = std::function<result<void>()>;
[[nodiscard]] result<void> run_all(std::vector<task> const& tasks, unsigned threads);

}  // namespace kiln::workshop
