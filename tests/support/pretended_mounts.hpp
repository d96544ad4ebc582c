// SPDX-License-Identifier: Apache-2.0
//
// File systems that come from images: times say what whoever made the image wanted, and only the mount tells one from another. While
// one lives, all files were changed for the last time at the same moment long ago, and are on the mount that was told last.
#pragma once

#include "base/files.hpp"

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string_view>
#include <sys/stat.h>

namespace kiln::test {

class pretended_mounts {
public:
    pretended_mounts() {
        static constexpr auto pretend = [](int dir, char const* path, int flags, unsigned mask, struct ::statx* about) {
            int const out = base::real_system_calls().statx(dir, path, flags, mask, about);
            about->stx_mtime = about->stx_ctime = {1'000'000'000, 0, 0};
            about->stx_mask |= tells_mount;
            about->stx_mnt_id = current();
            return out;
        };
        calls_.statx = pretend;
        base::install_system_calls(&calls_);
    }
    ~pretended_mounts() { base::install_system_calls(nullptr); }
    pretended_mounts(pretended_mounts const&) = delete;
    pretended_mounts& operator=(pretended_mounts const&) = delete;

    void mount(std::uint64_t which) const { current() = which; }
    // In place, and of the same length.
    void write_unnoticed(std::string const& file, std::string_view text) const {
        std::ofstream{file, std::ios::in | std::ios::out} << text;
    }

private:
    static constexpr unsigned tells_mount = 0x4000;  // STATX_MNT_ID_UNIQUE
    static std::atomic<std::uint64_t>& current() {
        static std::atomic<std::uint64_t> which{0};
        return which;
    }
    base::system_calls calls_ = base::real_system_calls();
};

}  // namespace kiln::test
