// SPDX-License-Identifier: Apache-2.0
#include "base/watched_load.hpp"

#include "base/files.hpp"

#include <dlfcn.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <openssl/crypto.h>

namespace kiln::base {

namespace {

constinit ElfW(Dyn) const* seen = nullptr;
constinit int times = 0;

void see(ElfW(Addr), ElfW(Dyn) const* dynamic) noexcept {
    seen = dynamic;
    ++times;
}

}  // namespace

TEST(watched_load, a_library_is_seen_once_and_stays_after_what_was_made_for_it) {
    ::Dl_info about{};
    ASSERT_NE(::dladdr(reinterpret_cast<void const*>(&::OpenSSL_version), &about), 0);
    auto const scratch = temporary_directory::make().value();
    auto const copy = scratch.path() / "libcopy.so";
    std::filesystem::copy_file(std::filesystem::canonical(about.dli_fname), copy);
    times = 0;
    void* const library = load_watched(copy.c_str(), RTLD_NOW | RTLD_LOCAL, see);
    ASSERT_NE(library, nullptr) << ::dlerror();
    EXPECT_EQ(times, 1);
    ::link_map* map = nullptr;
    ASSERT_EQ(::dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    EXPECT_EQ(map->l_ld, seen);
    auto* const version = reinterpret_cast<char const* (*)(int)>(::dlsym(library, "OpenSSL_version"));
    ASSERT_NE(version, nullptr);
    EXPECT_STREQ(version(0), ::OpenSSL_version(0));
    ::dlclose(library);
}

TEST(watched_load, what_cannot_be_loaded_is_told_as_dlopen_tells_it) {
    times = 0;
    EXPECT_EQ(load_watched("/nonexistent/libnone.so", RTLD_NOW, see), nullptr);
    char const* const why = ::dlerror();
    ASSERT_NE(why, nullptr);
    EXPECT_NE(std::string_view{why}.find("/nonexistent/libnone.so"), std::string_view::npos) << why;
    EXPECT_EQ(times, 0);
}

}  // namespace kiln::base
