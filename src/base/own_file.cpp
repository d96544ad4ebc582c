// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <string>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::base {

namespace {

namespace fs = std::filesystem;

// What the kernel says of the file that `code` was mapped from: its whole name, also where it was opened by another. Empty where it says nothing.
std::string mapped_from(void const* code) {
    std::string out;
    auto* const maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr) return out;
    auto const wanted = reinterpret_cast<std::uintptr_t>(code);
    char* line = nullptr;
    std::size_t room = 0;
    // "7f00-7f40 r-xp 0000 fe:00 17 /usr/lib/libc.so.6"
    while (out.empty() && ::getline(&line, &room, maps) > 0) {
        char* at = nullptr;
        auto const begin = std::strtoull(line, &at, 16);
        auto const end = *at == '-' ? std::strtoull(at + 1, nullptr, 16) : 0;
        auto const* const name = std::strchr(line, '/');
        if (name != nullptr && wanted >= begin && wanted < end) out = name;
    }
    std::free(line);
    std::fclose(maps);
    if (out.ends_with('\n')) out.pop_back();
    return out;
}

// What was replaced since it was loaded has its like in the same place, if anywhere.
fs::path by_name(std::string name) {
    constexpr std::string_view gone = " (deleted)";
    std::error_code failed;
    auto out = fs::canonical(name, failed);
    if (failed && name.ends_with(gone)) out = fs::canonical(name.substr(0, name.size() - gone.size()), failed);
    return failed ? fs::path{} : out;
}

}  // namespace

fs::path program_file() {
    std::error_code failed;
    if (auto const told = fs::read_symlink("/proc/self/exe", failed); !failed) return by_name(told);
    // Where /proc is not mounted the kernel has still told how the program was started.
    auto const* const started_as = reinterpret_cast<char const*>(::getauxval(AT_EXECFN));
    return started_as == nullptr ? fs::path{} : by_name(started_as);
}

fs::path file_with(void const* code) {
    // Of a program, dladdr says what it was called, which is not where it is: only a library has a name of its own.
    Dl_info about{};
    ::link_map* map = nullptr;
    bool const is_known = ::dladdr1(code, &about, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
    bool const is_library = is_known && map != nullptr && map->l_name != nullptr && map->l_name[0] != '\0';
    if (!is_library) return program_file();
    // Found by LD_LIBRARY_PATH=. and the like: from where, the program's working directory may no longer say.
    return by_name(map->l_name[0] == '/' ? map->l_name : mapped_from(code));
}

bool belongs_to(std::filesystem::path const& own, std::filesystem::path const& found) {
    struct ::stat ours {
    }, home{}, file{}, folder{};
    if (::stat(own.c_str(), &ours) != 0 || ::stat(own.parent_path().c_str(), &home) != 0 ||
        ::stat(found.c_str(), &file) != 0 || ::stat(found.parent_path().c_str(), &folder) != 0)
        return false;
    auto const is_of_ours = [&](struct ::stat const& about) {
        return about.st_uid == 0 || about.st_uid == ::geteuid() || about.st_uid == ours.st_uid ||
               about.st_uid == home.st_uid;
    };
    // In a folder like /tmp nobody replaces what is another's.
    bool const is_kept = (folder.st_mode & S_IWOTH) == 0 || (folder.st_mode & S_ISVTX) != 0;
    return is_of_ours(file) && is_of_ours(folder) && (file.st_mode & S_IWOTH) == 0 && is_kept;
}

}  // namespace kiln::base
