// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::base {

std::filesystem::path file_with(void const* code) {
    // Of a program, dladdr says what it was called, which is not where it is: only a library has a name of its own.
    Dl_info about{};
    ::link_map* map = nullptr;
    bool const is_known = ::dladdr1(code, &about, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
    bool const is_library = is_known && map != nullptr && map->l_name != nullptr && map->l_name[0] != '\0';
    std::error_code failed;
    if (is_library) return std::filesystem::canonical(map->l_name, failed);
    auto out = std::filesystem::canonical("/proc/self/exe", failed);
    // Where /proc is not mounted the kernel has still told how the program was started.
    auto const* const started_as = reinterpret_cast<char const*>(::getauxval(AT_EXECFN));
    if (failed && started_as != nullptr) out = std::filesystem::canonical(started_as, failed);
    return out;
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
