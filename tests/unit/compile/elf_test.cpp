// SPDX-License-Identifier: Apache-2.0
#include "compile/elf.hpp"

#include <gtest/gtest.h>

#include <elf.h>
#include <limits>

namespace kiln::compile {

TEST(elf, what_is_not_an_image_is_refused) {
    EXPECT_FALSE(read_cubin({}, 90, {}));
    EXPECT_FALSE(read_cubin(base::as_bytes("\x7f"
                                           "ELF but not really"),
                            90, {}));
}

namespace {

template <class T>
void put(base::byte_writer& w, T const& raw) {
    w.put_raw(std::as_bytes(std::span{&raw, 1}));
}

// One kernel whose shared memory and registers are what somebody wrote there.
base::bytes cubin_with(std::uint64_t shared_bytes, std::uint32_t registers, std::string const& kernel = "k") {
    auto const names = std::string{"\0.nv.shared.k\0.nv.info\0", 23} + kernel + '\0';
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_shnum = 5;
    head.e_shstrndx = 1;
    std::array<Elf64_Sym, 2> symbols{};
    symbols[1].st_name = 23;
    symbols[1].st_info = STT_FUNC;
    symbols[1].st_other = 0x10;
    symbols[1].st_shndx = 1;
    base::byte_writer info;
    info.put_u8(4), info.put_u8(0x2f), info.put_u16(8), info.put_u32(1), info.put_u32(registers);

    base::byte_writer w;
    head.e_shoff = sizeof(head) + names.size() + sizeof(symbols) + info.size();
    put(w, head);
    auto const names_at = w.size();
    w.put_raw(base::as_bytes(names));
    auto const symbols_at = w.size();
    put(w, symbols);
    auto const info_at = w.size();
    w.put_raw(info.view());
    auto const section = [&](std::uint32_t name, std::uint32_t type, std::uint64_t at, std::uint64_t size) {
        Elf64_Shdr out{};
        out.sh_name = name;
        out.sh_type = type;
        out.sh_offset = at;
        out.sh_size = size;
        out.sh_link = 1;  // where a symbol's name is
        put(w, out);
    };
    section(0, SHT_NULL, 0, 0);
    section(0, SHT_STRTAB, names_at, names.size());
    section(1, SHT_NOBITS, 0, shared_bytes);
    section(0, SHT_SYMTAB, symbols_at, sizeof(symbols));
    section(14, SHT_PROGBITS, info_at, info.size());
    return std::move(w).take();
}

}  // namespace

TEST(elf, the_process_that_compiled_it_is_no_part_of_a_cubin) {
    auto const named = [](std::string const& name) { return cubin_essence(cubin_with(16, 40, name)); };
    auto const one = named("_ZN39_INTERNAL_00000000_4_k_cu_0d86e87c_11771kEv");
    EXPECT_FALSE(one.empty());
    EXPECT_EQ(one, named("_ZN42_INTERNAL_00000000_4_k_cu_fe29937e_12345671kEv")) << "of another length, too";
    EXPECT_NE(one, named("_ZN39_INTERNAL_00000000_4_j_cu_0d86e87c_11771kEv")) << "another file";
    EXPECT_NE(one, named("_ZN39_INTERNAL_00000000_4_k_cu_0d86e87c_11771jEv")) << "another thing in it";
    EXPECT_NE(cubin_essence(cubin_with(16, 40)), cubin_essence(cubin_with(16, 41)));
    EXPECT_NE(cubin_essence(cubin_with(16, 40)), cubin_essence(cubin_with(32, 40)));
}

TEST(elf, what_is_cut_off_has_no_essence) {
    auto whole = cubin_with(16, 40);
    EXPECT_FALSE(cubin_essence(whole).empty());
    for (auto size = whole.size(); size-- > 0;)
        EXPECT_TRUE(cubin_essence(base::byte_span{whole}.first(size)).empty()) << size;
    EXPECT_TRUE(cubin_essence({}).empty());
}

TEST(elf, sizes_that_no_device_has_stay_positive) {
    for (auto const shared : {std::uint64_t{1} << 31, ~std::uint64_t{0}, std::uint64_t{0x8000'0000'8000'0000}}) {
        for (int const sm : {80, 90}) {
            auto const found = read_cubin(cubin_with(shared, 0xffff'ffff), sm, {}).value();
            ASSERT_EQ(found.kernels.size(), 1u);
            EXPECT_GT(found.kernels[0].shared_bytes, 1 << 30);
            EXPECT_EQ(found.kernels[0].registers, std::numeric_limits<int>::max());
        }
    }
    EXPECT_EQ(read_cubin(cubin_with(2048, 40), 90, {}).value().kernels[0].shared_bytes, 1024);
}

TEST(elf, entries_of_ptx) {
    auto const names = ptx_entries(".visible .entry b(\n.param .u64 p)\n{ ret; }\n.entry a\n(");
    EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(ptx_entries(".entry ").empty());
    EXPECT_TRUE(ptx_entries("").empty());
}

}  // namespace kiln::compile
