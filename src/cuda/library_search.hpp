// SPDX-License-Identifier: Apache-2.0
//
// Where the pieces of a CUDA toolkit are: shared libraries and headers. Places are asked in this order:
// KILN_CUDA_PATH, CUDA_HOME, the loader's own path, /usr/local/cuda, pip wheels, conda, the build's own
// copy. KILN_CUDA_PATH is exclusive: when it is set nothing else is looked at, so that it can pin a toolkit or
// hide all of them. KILN_NVRTC names the one library: the headers beside it come first, then the places. Nothing is run and nothing is loaded here; only directories are read. The driver is not
// part of a toolkit and is not searched for here.
#pragma once

#include "base/config.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cuda {

// What the search reads of its surroundings. Tests fill it in by hand.
struct search_environment {
    std::string kiln_cuda_path;
    std::string kiln_nvrtc;  // a file
    std::string cuda_home;
    std::string virtual_env;
    std::string conda_prefix;
    std::string path;  // PATH: to find python3 and so its prefix
    std::string home;
    std::string pyenv_root;
    std::string pyenv_version;
    std::string ld_library_path;
    std::filesystem::path build_cuda;  // toolkit fetched by the build; empty where there is none
    std::filesystem::path root = "/";  // what /usr is under

    // KILN_CUDA_PATH and KILN_NVRTC from the configuration, the rest from the environment; nothing from it when setuid.
    [[nodiscard]] static search_environment process(base::config const& settings);
};

enum class place_kind { kiln_nvrtc, kiln_cuda_path, cuda_home, loader_path, usr_local, pip, conda, build };
// "KILN_NVRTC", "KILN_CUDA_PATH", "CUDA_HOME", "loader path", "/usr/local/cuda", "pip", "conda", "build".
[[nodiscard]] std::string_view name_of(place_kind kind) noexcept;

struct place {
    place_kind kind = place_kind::loader_path;
    std::filesystem::path root;  // empty for the loader path

    // "pip (/home/ann/venv/lib/python3.11/site-packages)".
    [[nodiscard]] std::string text() const;
};

struct candidate {
    place from;
    std::filesystem::path file;  // exists
};

struct include_finding {
    place from;
    std::filesystem::path directory;
    std::string_view holds;  // "cuda" or "cccl"
};

class library_search {
public:
    explicit library_search(search_environment environment);

    // Places worth asking, first to last, whether or not they exist.
    [[nodiscard]] std::vector<place> places() const;

    // What to open, in order, until `take` says true. Every file costs a system call and Python's places a dozen: what comes
    // after the first that serves is not looked at.
    void visit_candidates(std::span<std::string_view const> sonames,
                          std::function<bool(candidate const&)> const& take) const;
    // What to open, in order: place by place, within a place soname by soname. The loader's own path is LD_LIBRARY_PATH, then
    // its cache: libraries are opened by file, so that the file whose identity was read is the one that is used.
    [[nodiscard]] std::vector<candidate> candidates(std::span<std::string_view const> sonames) const;

    // The library that KILN_NVRTC names, absolute; empty where it names none.
    [[nodiscard]] std::filesystem::path named_nvrtc() const;

    // CCCL first, then the toolkit's own headers; at most one of each, from the first place that has it.
    [[nodiscard]] std::vector<include_finding> find_includes() const;
    [[nodiscard]] std::vector<std::filesystem::path> toolkit_includes() const;

    // The toolkit that KILN_CUDA_PATH names and that is not there; empty where it names none, or a directory.
    [[nodiscard]] std::filesystem::path absent_toolkit() const;
    // The only one that is looked at, because KILN_CUDA_PATH names it; empty where it names none.
    [[nodiscard]] std::filesystem::path named_toolkit() const;
    // For messages: "KILN_CUDA_PATH (/opt/cuda)", or "loader path, /usr/local/cuda, pip (...); CUDA_HOME is not set".
    [[nodiscard]] std::string tried() const;

private:
    [[nodiscard]] std::vector<std::filesystem::path> on_loader_path(std::string_view soname) const;
    // Until it says true.
    void visit_places(std::function<bool(place const&)> const& visit) const;
    [[nodiscard]] std::vector<place> const& far_places() const;

    search_environment environment_;
    std::vector<place> near_;  // known without looking
    struct lazy_places;
    std::shared_ptr<lazy_places>
        far_;  // wheels, conda, the build's own: found at the first need; null where only near_ counts
};

}  // namespace kiln::cuda
