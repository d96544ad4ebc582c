// SPDX-License-Identifier: Apache-2.0
#include "compile/toolchain.hpp"

#include "base/files.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>

namespace kiln::compile {

namespace {

// A shared object that is surely here, has a build id, and is nobody's interceptor.
std::filesystem::path some_library() {
    void* const handle = ::dlopen("libm.so.6", RTLD_NOW);
    ::link_map* map = nullptr;
    EXPECT_TRUE(handle != nullptr && ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0);
    return map->l_name;
}

std::string raw_bytes(std::string const& hex) {
    std::string out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return out;
}

void set_time_zero(std::filesystem::path const& file) {
    struct ::timespec const zero[2] = {{0, 0}, {0, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), zero, 0), 0);
}

}  // namespace

TEST(faults, V1_V2_the_compiler_is_known_by_its_build_id_and_not_by_name_time_or_size) {
    auto const scratch = base::temporary_directory::make().value();
    auto bytes = *base::read_file(some_library()).value();
    auto const one = scratch.path() / "one.so";
    auto const two = scratch.path() / "two.so";
    base::replace_file(one, bytes).value();
    auto const id = build_id_of(one).value();
    ASSERT_EQ(id.size(), 40u) << id;

    // Another build: same size, same time, one byte of the id differs.
    auto const text = base::as_text(bytes);
    auto const at = text.find(raw_bytes(id));
    ASSERT_NE(at, text.npos);
    bytes[at] ^= std::byte{1};
    base::replace_file(two, bytes).value();
    set_time_zero(one);
    set_time_zero(two);
    EXPECT_EQ(build_id_of(one).value(), id) << "a time of zero changes nothing";
    EXPECT_NE(build_id_of(two).value(), id);
}

TEST(toolchain, a_file_without_a_build_id_is_known_by_its_content) {
    auto const scratch = base::temporary_directory::make().value();
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    auto const file = scratch.path() / "bare.so";
    base::replace_file(file, std::as_bytes(std::span{&header, 1})).value();
    EXPECT_TRUE(build_id_of(file).value().starts_with("sha256:"));
    base::replace_file(file, base::as_bytes("no library")).value();
    EXPECT_EQ(build_id_of(file).error().code(), errc::corrupt);
}

TEST(toolchain, nothing_found_names_the_places_and_the_remedy) {
    cuda::search_environment none;
    none.kiln_cuda_path = "/nowhere/cuda";
    auto const r = find_nvrtc(cuda::library_search{none});
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message().find("/nowhere/cuda"), std::string::npos);
    EXPECT_NE(r.error().message().find("pip install"), std::string::npos);
}

}  // namespace kiln::compile
