// SPDX-License-Identifier: Apache-2.0
#include "cuda/loaded_library.hpp"
#include "base/digest.hpp"
#include "base/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <openssl/crypto.h>

namespace kiln::cuda {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;

ElfW(Half) own_machine() {
    auto const own = *base::read_file("/proc/self/exe").value();
    ElfW(Ehdr) head;
    std::memcpy(&head, own.data(), sizeof head);
    return head.e_machine;
}

fs::path file_of(void const* address) {
    ::Dl_info info{};
    EXPECT_NE(::dladdr(address, &info), 0);
    return info.dli_fname;
}

TEST(identify, a_loaded_librarys_build_id) {
    auto const* inside = reinterpret_cast<void const*>(&::OpenSSL_version);
    auto const identity = identify(inside);
    ASSERT_TRUE(identity) << identity.error().message();
    EXPECT_THAT(identity->build_id, MatchesRegex("[0-9a-f]{40}"));
    EXPECT_EQ(fs::canonical(identity->file), fs::canonical(file_of(inside)));
    EXPECT_EQ(identify_file(identity->file).value().build_id, identity->build_id) << "the file says the same";
}

TEST(identify, what_is_loaded_counts_and_not_what_lies_there_now) {
    auto const scratch = base::temporary_directory::make().value();
    auto const copy = scratch.path() / "libcopy.so";
    fs::copy_file(fs::canonical(file_of(reinterpret_cast<void const*>(&::OpenSSL_version))), copy);
    auto const library = open_library({{}, copy});
    ASSERT_TRUE(library) << library.error().message();
    auto const before = library->identity.build_id;
    ASSERT_TRUE(base::replace_file(copy, base::as_bytes("another release")));
    EXPECT_EQ(identify(library->map->l_ld).value().build_id, before);
}

TEST(identify, an_address_of_nobody) {
    int local = 0;
    EXPECT_EQ(identify(&local).error().code(), errc::not_found);
}

TEST(identify_file, what_is_no_library) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "lib.so";
    ASSERT_TRUE(base::replace_file(file, base::as_bytes(std::string(100, 'x'))));
    EXPECT_EQ(identify_file(file).error().code(), errc::corrupt);
    ASSERT_TRUE(base::replace_file(file, base::as_bytes("short")));
    EXPECT_EQ(identify_file(file).error().code(), errc::corrupt);
    EXPECT_EQ(identify_file(scratch.path() / "absent").error().code(), errc::io);
}

TEST(identify_file, without_a_build_id_the_contents_count) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "lib.so";
    ElfW(Ehdr) head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_phentsize = sizeof(ElfW(Phdr));
    head.e_machine = own_machine();
    auto const bytes = base::byte_span{reinterpret_cast<std::byte const*>(&head), sizeof head};
    ASSERT_TRUE(base::replace_file(file, bytes));
    EXPECT_EQ(identify_file(file).value().build_id, "sha256:" + base::sha256_of(bytes).hex());
}

TEST(identify_file, a_library_of_another_machine_is_none) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "lib.so";
    ElfW(Ehdr) head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_phentsize = sizeof(ElfW(Phdr));
    head.e_machine = EM_RISCV;
    ASSERT_TRUE(base::replace_file(file, std::as_bytes(std::span{&head, 1})));
    EXPECT_EQ(identify_file(file).error().code(), errc::corrupt);
}

// One note: sizes, type, name, description, padded to four.
base::bytes note(std::uint32_t type, std::string_view name, std::string_view text) {
    base::byte_writer w;
    w.put_u32(static_cast<std::uint32_t>(name.size() + 1));
    w.put_u32(static_cast<std::uint32_t>(text.size()));
    w.put_u32(type);
    auto const put = [&](std::string_view part, std::size_t size) {
        for (std::size_t i = 0; i < (size + 3) / 4 * 4; ++i)
            w.put_u8(i < part.size() ? static_cast<std::uint8_t>(part[i]) : 0);
    };
    put(name, name.size() + 1);
    put(text, text.size());
    return std::move(w).take();
}

TEST(build_id_in, finds_it_among_other_notes) {
    auto notes = note(1, "GNU", "abcde");
    for (auto const& more : {note(3, "stapsdt", "xyz"), note(3, "GNU", "\x01\x02\xff")})
        notes.insert(notes.end(), more.begin(), more.end());
    EXPECT_EQ(build_id_in(notes, 4), "0102ff");
}

TEST(build_id_in, notes_that_lie_about_their_size_are_left_alone) {
    auto const whole = note(3, "GNU", std::string(20, 'b'));
    ASSERT_FALSE(build_id_in(whole, 4).empty());
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_EQ(build_id_in(base::byte_span{whole}.first(size), 4), "") << size;
    auto huge = whole;
    std::memset(huge.data(), 0xff, 8);
    EXPECT_EQ(build_id_in(huge, 4), "");
}

TEST(open_library, gives_symbols_base_and_identity) {
    auto const library = open_library({{place_kind::loader_path, {}}, "libm.so.6"});
    ASSERT_TRUE(library) << library.error().message();
    EXPECT_NE(library->symbol("cos"), nullptr);
    EXPECT_EQ(library->symbol("no such function"), nullptr);
    EXPECT_NE(library->map->l_addr, 0U);
    EXPECT_NE(library->map->l_ld, nullptr);
    EXPECT_TRUE(library->identity.file.is_absolute());
}

TEST(open_library, of_a_file_that_was_cut_short_is_an_error_and_not_a_signal) {
    auto const whole = *base::read_file(file_of(reinterpret_cast<void const*>(&::dlsym))).value();
    auto const scratch = base::temporary_directory::make("kiln-library").value();
    auto const torn = scratch.path() / "libtorn.so";
    base::replace_file(torn, base::byte_span{whole}.first(whole.size() / 2)).value();
    auto const library = open_library({{}, torn});
    ASSERT_FALSE(library);
    EXPECT_EQ(library.error().code(), errc::corrupt);
    EXPECT_THAT(library.error().message(), HasSubstr("libtorn.so: cut short"));
}

TEST(open_library, says_what_the_loader_said) {
    auto const library = open_library({{}, "libkiln-is-not-there.so.1"});
    ASSERT_FALSE(library);
    EXPECT_EQ(library.error().code(), errc::not_found);
    EXPECT_THAT(library.error().message(), HasSubstr("libkiln-is-not-there.so.1"));
}

}  // namespace
}  // namespace kiln::cuda
