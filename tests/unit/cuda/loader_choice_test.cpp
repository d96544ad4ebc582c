// SPDX-License-Identifier: Apache-2.0
#include "cuda/loader_choice.hpp"

#include "base/files.hpp"
#include "cuda/loaded_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <dlfcn.h>
#include <elf.h>

namespace kiln::cuda {

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A library of nothing but a run path.
base::bytes library_with(std::initializer_list<std::pair<::Elf64_Sxword, std::string>> paths) {
    struct {
        ::Elf64_Ehdr head{};
        ::Elf64_Phdr segments[2]{};
        ::Elf64_Dyn entries[5]{};
    } file;
    std::string strings(1, '\0');
    std::size_t next = 0;
    for (auto const& [tag, path] : paths) {
        file.entries[next++] = {tag, {strings.size()}};
        strings += path + '\0';
    }
    file.entries[next++] = {DT_STRTAB, {0x1000 + sizeof file}};
    file.entries[next++] = {DT_STRSZ, {strings.size()}};
    std::memcpy(file.head.e_ident, ELFMAG, SELFMAG);
#if defined(__x86_64__)
    file.head.e_machine = EM_X86_64;
#else
    file.head.e_machine = EM_AARCH64;
#endif
    file.head.e_phoff = sizeof file.head;
    file.head.e_phentsize = sizeof(::Elf64_Phdr);
    file.head.e_phnum = 2;
    file.segments[0] = {PT_LOAD, PF_R, 0, 0x1000, 0x1000, sizeof file + strings.size(), sizeof file + strings.size(),
                        1};
    auto const entries = sizeof file.head + sizeof file.segments;
    file.segments[1] = {PT_DYNAMIC,          PF_R, entries, 0x1000 + entries, 0x1000 + entries, sizeof file.entries,
                        sizeof file.entries, 1};
    base::bytes out(sizeof file);
    std::memcpy(out.data(), &file, sizeof file);
    auto const text = base::as_bytes(strings);
    out.insert(out.end(), text.begin(), text.end());
    return out;
}

}  // namespace

TEST(loader_choice, is_what_is_loaded_under_the_name) {
    auto const libc = loaded_under("libc.so.6");
    EXPECT_EQ(libc.filename(), "libc.so.6");
    EXPECT_EQ(loaders_choice("/nowhere/libx.so", "libc.so.6"), libc);
}

TEST(loader_choice, is_nothing_where_the_loader_finds_nothing) {
    EXPECT_EQ(loaded_under("libkiln-is-not-there.so.9.9"), "");
    EXPECT_EQ(loaders_choice("/nowhere/libx.so", "libkiln-is-not-there.so.9.9"), "");
}

// Of the system's own libraries some are in nobody's process.
TEST(loader_choice, is_what_the_loader_takes) {
    for (auto const* name : {"libthread_db.so.1", "libBrokenLocale.so.1", "libnss_compat.so.2"}) {
        if (!loaded_under(name).empty()) continue;
        auto const told = loaders_choice("/nowhere/libx.so", name);
        EXPECT_EQ(loaded_under(name), "") << "it is not loaded by asking";
        auto* const handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        if (handle == nullptr) continue;  // some need others that nobody has
        EXPECT_EQ(told, loaded_under(name)) << name;
        ::dlclose(handle);
    }
}

TEST(run_path, of_a_library_without_one_is_empty) {
    auto const of_libc = run_path_of(loaded_under("libc.so.6")).value();
    EXPECT_TRUE(of_libc.before_users.empty());
    EXPECT_TRUE(of_libc.after_users.empty());
    EXPECT_FALSE(run_path_of("/nowhere/libx.so"));
}

TEST(run_path, comes_before_the_users_or_after_it) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "libx.so";
    auto const of = [&](auto const& library) {
        base::replace_file(file, library).value();
        return run_path_of(file).value();
    };
    auto const old = of(library_with({{DT_RPATH, "$ORIGIN:/opt/lib"}}));
    EXPECT_THAT(old.before_users, ElementsAre(scratch.path(), "/opt/lib"));
    EXPECT_THAT(old.after_users, IsEmpty());
    auto const both = of(library_with({{DT_RPATH, "/old"}, {DT_RUNPATH, "${ORIGIN}/../lib:/x/$LIB:relative:/y"}}));
    EXPECT_THAT(both.before_users, IsEmpty());
    EXPECT_THAT(both.after_users, ElementsAre(scratch.path() / "../lib", "/y"));
}

TEST(run_path, of_a_library_that_is_cut_short_is_an_error_or_empty) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "libx.so";
    auto const whole = library_with({{DT_RUNPATH, "/opt/lib"}});
    for (std::size_t size = 0; size < whole.size(); ++size) {
        base::replace_file(file, base::byte_span{whole}.first(size)).value();
        auto const told = run_path_of(file);
        EXPECT_TRUE(!told || told->after_users.empty()) << size;
    }
}

TEST(loader_choice, is_in_the_librarys_own_path) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "libx.so", needed = scratch.path() / "libkiln-is-needed.so.9.9";
    base::replace_file(file, library_with({{DT_RUNPATH, "/nowhere:$ORIGIN"}})).value();
    EXPECT_EQ(loaders_choice(file, needed.filename()), "");
    base::replace_file(needed, base::as_bytes("text")).value();
    EXPECT_EQ(loaders_choice(file, needed.filename()), needed);
}

}  // namespace kiln::cuda
