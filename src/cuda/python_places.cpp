// SPDX-License-Identifier: Apache-2.0
#include "cuda/python_places.hpp"

#include "base/directory.hpp"
#include "base/files.hpp"

#include <algorithm>
#include <cstring>

namespace kiln::cuda {

namespace fs = std::filesystem;

namespace {

// Prefixes of Python installations: <prefix>/lib/python3.x/site-packages.
std::vector<fs::path> pyenv_prefixes(search_environment const& e, fs::path const& pyenv) {
    std::string version = e.pyenv_version;
    if (version.empty()) {
        if (auto const text = base::read_file(pyenv / "version", 4096); text && *text) {
            auto const all = base::as_text(**text);
            version = all.substr(0, all.find_first_of(" \r\n"));
        }
    }
    std::vector<fs::path> out;
    if (!version.empty() && version != "system") out.push_back(pyenv / "versions" / version);
    for (auto& other : subdirectories(pyenv / "versions")) out.push_back(std::move(other));
    return out;
}

void add_prefixes_on_path(search_environment const& e, std::vector<fs::path>& out) {
    std::string_view rest = e.path;
    while (!rest.empty()) {
        auto const colon = std::min(rest.find(':'), rest.size());
        fs::path const directory{rest.substr(0, colon)};
        rest.remove_prefix(std::min(rest.size(), colon + 1));
        auto const python = directory / "python3";
        std::error_code missing;
        if (!directory.is_absolute() || !fs::exists(python, missing)) continue;
        if (directory.filename() == "shims") {
            for (auto& prefix : pyenv_prefixes(e, directory.parent_path())) out.push_back(std::move(prefix));
        } else {
            // A virtual environment's python3 is a link to another prefix: its own packages come first.
            out.push_back(directory.parent_path());
            if (auto const real = fs::canonical(python, missing); !missing)
                out.push_back(real.parent_path().parent_path());
        }
        return;
    }
}

}  // namespace

std::vector<fs::path> subdirectories(fs::path const& of, std::string_view prefix) {
    std::vector<fs::path> out;
    (void)base::for_each_name(of, [&](std::string_view name) {
        std::error_code ignored;
        if (name.starts_with(prefix) && fs::is_directory(of / name, ignored)) out.push_back(of / name);
    });
    std::ranges::sort(out, [](fs::path const& a, fs::path const& b) { return ::strverscmp(a.c_str(), b.c_str()) > 0; });
    return out;
}

std::vector<fs::path> python_places(search_environment const& e) {
    std::vector<fs::path> prefixes;
    if (!e.virtual_env.empty()) prefixes.emplace_back(e.virtual_env);
    if (!e.conda_prefix.empty()) prefixes.emplace_back(e.conda_prefix);
    add_prefixes_on_path(e, prefixes);
    if (!e.pyenv_root.empty()) {
        for (auto& prefix : pyenv_prefixes(e, e.pyenv_root)) prefixes.push_back(std::move(prefix));
    }
    if (!e.home.empty()) prefixes.push_back(fs::path{e.home} / ".local");
    prefixes.push_back(e.root / "usr/local");
    prefixes.push_back(e.root / "usr");

    std::vector<fs::path> out;
    for (auto const& prefix : prefixes) {
        for (auto const& python : subdirectories(prefix / "lib", "python3")) {
            for (auto const* leaf : {"site-packages", "dist-packages"}) {
                auto place = python / leaf;
                std::error_code ignored;
                if (!fs::is_directory(place / "nvidia", ignored) || std::ranges::find(out, place) != out.end())
                    continue;
                out.push_back(std::move(place));
            }
        }
    }
    return out;
}

}  // namespace kiln::cuda
