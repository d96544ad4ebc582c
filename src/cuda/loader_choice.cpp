// SPDX-License-Identifier: Apache-2.0
#include "cuda/loader_choice.hpp"

#include "base/files.hpp"
#include "base/load_library.hpp"
#include "cuda/loaded_library.hpp"

#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <span>
#include <unistd.h>
#include <vector>

namespace kiln::cuda {

namespace fs = std::filesystem;

namespace {

constexpr char const* loaders_list = "/etc/ld.so.cache";

// Of a handle that is closed again.
fs::path path_behind(void* handle) {
    if (handle == nullptr) return {};
    base::loader_use const use;
    ::link_map* map = nullptr;
    bool const known = ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
    fs::path out = known ? map->l_name : "";
    ::dlclose(handle);
    return out;
}

bool is_systems(std::string_view directory) {
    return directory.starts_with("/lib") || directory.starts_with("/usr/lib");
}

// Where the loader looks for a name that this library asks for, until it comes to its list.
std::vector<fs::path> path_of_user() {
    static char const own = 0;
    Dl_info about{};
    ::link_map* map = nullptr;
    ::Dl_serinfo size{};
    base::loader_use const use;
    if (::dladdr1(&own, &about, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
        ::dlinfo(map, RTLD_DI_SERINFOSIZE, &size) != 0)
        return {};
    std::vector<std::max_align_t> room(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* const all = reinterpret_cast<::Dl_serinfo*>(room.data());
    if (::dlinfo(map, RTLD_DI_SERINFOSIZE, all) != 0 || ::dlinfo(map, RTLD_DI_SERINFO, all) != 0) return {};
    std::vector<fs::path> out;
    for (unsigned i = 0; i < all->dls_cnt; ++i) out.emplace_back(all->dls_serpath[i].dls_name);
    while (!out.empty() && is_systems(out.back().native())) out.pop_back();
    return out;
}

fs::path first_in(std::span<fs::path const> directories, std::string const& name) {
    for (auto const& directory : directories) {
        if (auto file = directory / name; ::access(file.c_str(), R_OK) == 0) return file;
    }
    return {};
}

// The list has paths as texts. Empty: it has none of this name, or several, and which one counts is the loader's affair.
fs::path only_one_in_list(std::string const& name) {
    auto const list = base::read_file(loaders_list);
    if (!list || !*list) return {};
    auto const text = base::as_text(**list);
    auto const wanted = "/" + name + '\0';
    auto const find = [&](std::size_t from) {
        auto const* const at =
            static_cast<char const*>(::memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size()));
        return at == nullptr ? text.npos : static_cast<std::size_t>(at - text.data());
    };
    auto const at = find(0);
    if (at == text.npos || find(at + 1) != text.npos) return {};
    auto const from = text.rfind('\0', at) + 1;
    return text.substr(from, at + 1 + name.size() - from);
}

}  // namespace

fs::path loaded_under(std::string const& name) {
    return path_behind(base::load_library(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD));
}

fs::path loaders_choice(fs::path const& who, std::string const& name) {
    if (auto taken = loaded_under(name); !taken.empty()) return taken;
    auto const found = run_path_of(who);
    auto const own = found ? *found : run_path{};
    if (auto file = first_in(own.before_users, name); !file.empty()) return file;
    if (auto file = first_in(path_of_user(), name); !file.empty()) return file;
    if (auto file = first_in(own.after_users, name); !file.empty()) return file;
    if (auto file = only_one_in_list(name); !file.empty()) return file;
    return path_behind(base::load_library(name.c_str(), RTLD_LAZY | RTLD_LOCAL));
}

}  // namespace kiln::cuda
