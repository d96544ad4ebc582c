// SPDX-License-Identifier: Apache-2.0
#include "base/watched_load.hpp"

#include "base/files.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/crypto.h>

namespace kiln::base {

namespace {

constinit ElfW(Dyn) const* seen = nullptr;
constinit int times = 0;

constinit int in_memory = 0, only_for_itself = 0;

void see(ElfW(Addr), ElfW(Dyn) const* dynamic) noexcept {
    seen = dynamic;
    ++times;
    (void)::dl_iterate_phdr(
        [](::dl_phdr_info* object, std::size_t, void*) noexcept {
            std::string_view const name = object->dlpi_name;
            in_memory += name.starts_with("/proc/");
            only_for_itself += name.starts_with("/proc/self/");
            return 0;
        },
        nullptr);
}

std::filesystem::path a_library() {
    ::Dl_info about{};
    (void)::dladdr(reinterpret_cast<void const*>(&::OpenSSL_version), &about);
    return std::filesystem::canonical(about.dli_fname);
}

}  // namespace

TEST(watched_load, a_library_is_seen_once_and_stays_after_what_was_made_for_it) {
    auto const scratch = temporary_directory::make().value();
    auto const copy = scratch.path() / "libcopy.so";
    std::filesystem::copy_file(a_library(), copy);
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

// A debugger opens what the loader has opened, by the same name.
TEST(watched_load, what_is_made_has_names_for_everybody) {
    auto const scratch = temporary_directory::make().value();
    auto const copy = scratch.path() / "libcopy.so";
    std::filesystem::copy_file(a_library(), copy);
    in_memory = only_for_itself = 0;
    void* const library = load_watched(copy.c_str(), RTLD_NOW | RTLD_LOCAL, see);
    ASSERT_NE(library, nullptr) << ::dlerror();
    EXPECT_EQ(in_memory, 2);
    EXPECT_EQ(only_for_itself, 0);
    ::dlclose(library);
}

TEST(watched_load, a_program_that_loads_from_memory_itself_is_no_hindrance) {
    auto const scratch = temporary_directory::make().value();
    auto const copy = scratch.path() / "libcopy.so", another = scratch.path() / "libanother.so";
    std::filesystem::copy_file(a_library(), copy);
    std::filesystem::copy_file(copy, another);
    // Closed, so that the next file gets its number.
    auto file = open_file(another, O_RDONLY).value();
    void* const its_own = ::dlopen(fmt::format("/proc/self/fd/{}", file.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(its_own, nullptr) << ::dlerror();
    file.reset();
    times = 0;
    void* const library = load_watched(copy.c_str(), RTLD_NOW | RTLD_LOCAL, see);
    ASSERT_NE(library, nullptr) << ::dlerror();
    EXPECT_EQ(times, 1);
    ::dlclose(library);
    ::dlclose(its_own);
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
