// SPDX-License-Identifier: Apache-2.0
#include "compile/import_slots.hpp"

#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::compile {

namespace {

struct dynamic_section {
    ElfW(Sym) const* symbols = nullptr;
    char const* strings = nullptr;
    ElfW(Rela) const* relocations[2] = {};
    std::size_t counts[2] = {};
};

dynamic_section read_dynamic(ElfW(Addr) base, ElfW(Dyn) const* d) noexcept {
    dynamic_section out;
    // glibc rewrites these to absolute addresses, other loaders leave them relative. What is absolute may lie anywhere: `kiln run` gives a
    // library another table of symbols, and a library may be among the lowest addresses (glibc.cpu.prefer_map_32bit_exec).
    constexpr ElfW(Addr) longer_than_any_library = 1ULL << 32;
    auto address = [&](ElfW(Addr) value) {
        bool const is_relative = value < base && value < longer_than_any_library;
        return is_relative ? value + base : value;
    };
    for (; d->d_tag != DT_NULL; ++d) {
        switch (d->d_tag) {
            case DT_SYMTAB: out.symbols = reinterpret_cast<ElfW(Sym) const*>(address(d->d_un.d_ptr)); break;
            case DT_STRTAB: out.strings = reinterpret_cast<char const*>(address(d->d_un.d_ptr)); break;
            case DT_JMPREL: out.relocations[0] = reinterpret_cast<ElfW(Rela) const*>(address(d->d_un.d_ptr)); break;
            case DT_PLTRELSZ: out.counts[0] = d->d_un.d_val / sizeof(ElfW(Rela)); break;
            case DT_RELA: out.relocations[1] = reinterpret_cast<ElfW(Rela) const*>(address(d->d_un.d_ptr)); break;
            case DT_RELASZ: out.counts[1] = d->d_un.d_val / sizeof(ElfW(Rela)); break;
            default: break;
        }
    }
    return out;
}

bool is_import(ElfW(Rela) const& r) noexcept {
    auto const type = ELF64_R_TYPE(r.r_info);
#if defined(__x86_64__)
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
    return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
#else
    return false && type;
#endif
}

bool point_at(void** slot, void* replacement) noexcept {
    auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    auto const start = reinterpret_cast<std::uintptr_t>(slot) & ~(page - 1);
    // The slot may lie in memory that was made read-only after relocation.
    if (::mprotect(reinterpret_cast<void*>(start), page, PROT_READ | PROT_WRITE) != 0) return false;
    __atomic_store_n(slot, replacement, __ATOMIC_RELEASE);
    return true;
}

}  // namespace

void point_imports(ElfW(Addr) base, ElfW(Dyn) const* in, std::span<import_slot> slots) noexcept {
    auto const dynamic = read_dynamic(base, in);
    for (int table = 0; table < 2 && dynamic.symbols != nullptr && dynamic.strings != nullptr; ++table) {
        for (std::size_t i = 0; i < dynamic.counts[table]; ++i) {
            auto const& r = dynamic.relocations[table][i];
            if (!is_import(r)) continue;
            std::string_view const name = dynamic.strings + dynamic.symbols[ELF64_R_SYM(r.r_info)].st_name;
            for (auto& one : slots) {
                if (one.import == name && point_at(reinterpret_cast<void**>(base + r.r_offset), one.replacement))
                    ++one.pointed;
            }
        }
    }
}

result<void> point_imports(void* library, std::span<import_slot> slots) {
    link_map* map = nullptr;
    if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) {
        return fail(errc::unsupported, "cannot look into the compiler library: {}", ::dlerror());
    }
    point_imports(map->l_addr, map->l_ld, slots);
    return {};
}

}  // namespace kiln::compile
