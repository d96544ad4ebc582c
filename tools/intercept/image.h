// SPDX-License-Identifier: Apache-2.0
//
// ELF files, mapped and never trusted: what hook.c reads of a compiler, and fills in of a stand-in and its bridge.
#pragma once

#include "bare.h"

#include <elf.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

struct image {
    unsigned char* bytes;
    size_t size;
    Elf64_Sym const* symbols;
    size_t count;
    char* strings;
    size_t string_bytes;
    char const* soname;
    uint32_t const* gnu_hash;  // null: it has none
    Elf64_Dyn* dynamic;
    size_t entries;
    struct stat about;
};

static int holds(struct image const* i, void const* at, size_t bytes) {
    uintptr_t const begin = (uintptr_t)i->bytes;
    uintptr_t const from = (uintptr_t)at;
    return at && from >= begin && from - begin <= i->size && bytes <= i->size - (from - begin);
}

static void* at_address(struct image const* i, uint64_t address) {
    Elf64_Ehdr const* const h = (void*)i->bytes;
    Elf64_Phdr const* const p = (void*)(i->bytes + h->e_phoff);
    for (int k = 0; k < h->e_phnum; ++k) {
        if (p[k].p_type == PT_LOAD && address >= p[k].p_vaddr && address - p[k].p_vaddr < p[k].p_filesz)
            return i->bytes + p[k].p_offset + (address - p[k].p_vaddr);
    }
    return 0;
}

// How many dynamic symbols there are: one more than the last in any chain.
static size_t count_by_gnu_hash(struct image const* i, uint32_t const* table) {
    if (!holds(i, table, 16)) return 0;
    uint32_t const buckets = table[0], first = table[1], bloom = table[2];
    uint32_t const* const bucket = (uint32_t const*)((uint64_t const*)(table + 4) + bloom);
    if (!holds(i, bucket, (size_t)buckets * 4)) return 0;
    uint32_t last = 0;
    for (uint32_t k = 0; k < buckets; ++k) last = bucket[k] > last ? bucket[k] : last;
    if (last < first) return 0;
    uint32_t const* const chain = bucket + buckets;
    while (holds(i, chain + (last - first), 4) && !(chain[last - first] & 1)) ++last;
    return holds(i, chain + (last - first), 4) ? (size_t)last + 1 : 0;
}

static Elf64_Dyn* entry_of(struct image const* i, int64_t tag) {
    for (size_t k = 0; k < i->entries && i->dynamic[k].d_tag != DT_NULL; ++k) {
        if (i->dynamic[k].d_tag == tag) return i->dynamic + k;
    }
    return 0;
}

static int read_dynamic(struct image* i, Elf64_Dyn* d, size_t entries) {
    uint32_t const* sysv = 0;
    uint64_t soname = 0;
    i->dynamic = d;
    i->entries = entries;
    for (size_t k = 0; k < entries && d[k].d_tag != DT_NULL; ++k) {
        switch (d[k].d_tag) {
            case DT_SYMTAB: i->symbols = at_address(i, d[k].d_un.d_ptr); break;
            case DT_STRTAB: i->strings = at_address(i, d[k].d_un.d_ptr); break;
            case DT_STRSZ: i->string_bytes = d[k].d_un.d_val; break;
            case DT_GNU_HASH: i->gnu_hash = at_address(i, d[k].d_un.d_ptr); break;
            case DT_HASH: sysv = at_address(i, d[k].d_un.d_ptr); break;
            case DT_SONAME: soname = d[k].d_un.d_val; break;
            default: break;
        }
    }
    if (!i->string_bytes || !holds(i, i->strings, i->string_bytes) || i->strings[i->string_bytes - 1]) return 0;
    if (soname && soname < i->string_bytes) i->soname = i->strings + soname;
    if (sysv && holds(i, sysv, 8)) i->count = sysv[1];
    else if (i->gnu_hash) i->count = count_by_gnu_hash(i, i->gnu_hash);
    return i->count && holds(i, i->symbols, i->count * sizeof(Elf64_Sym));
}

// To be read, and written over in memory alone.
static int map_file(struct image* i, char const* path) {
    memset(i, 0, sizeof *i);
    int const fd = bare_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0) return 0;
    int const good = bare_fstat(fd, &i->about) && S_ISREG(i->about.st_mode) && i->about.st_size >= 4096;
    void* const at = good ? bare_map((size_t)i->about.st_size, PROT_READ | PROT_WRITE, fd) : 0;
    bare_close(fd);
    if (!at) return 0;
    i->bytes = at;
    i->size = (size_t)i->about.st_size;
    return 1;
}

static void unmap(struct image* i) {
    if (i->bytes) bare_unmap(i->bytes, i->size);
    i->bytes = 0;
}

// False for anything that is no library of this machine: the loader will say so itself.
static int open_image(struct image* i, char const* path) {
    if (!map_file(i, path)) return 0;
    Elf64_Ehdr const* const h = (void*)i->bytes;
    Elf64_Phdr const* const p = (void*)(i->bytes + h->e_phoff);
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_machine != OWN_MACHINE) return 0;
    if (h->e_phoff > i->size || h->e_phoff % 8 || !holds(i, p, (size_t)h->e_phnum * sizeof *p)) return 0;
    for (int k = 0; k < h->e_phnum; ++k) {
        if (p[k].p_type != PT_DYNAMIC) continue;
        Elf64_Dyn* const d = (void*)(i->bytes + p[k].p_offset);
        return holds(i, d, p[k].p_filesz) && read_dynamic(i, d, p[k].p_filesz / sizeof *d);
    }
    return 0;
}

// The name of symbol `k` if it is a function that others can find.
static char* function_name(struct image const* i, size_t k) {
    Elf64_Sym const* const s = i->symbols + k;
    if (s->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s->st_info) != STT_FUNC || ELF64_ST_BIND(s->st_info) == STB_LOCAL) return 0;
    return s->st_name < i->string_bytes ? i->strings + s->st_name : 0;
}

// Likewise, if it is one of the API.
static char* exported(struct image const* i, size_t k) {
    char* const name = function_name(i, k);
    return name && (starts_with(name, "nv") || starts_with(name, "__nv")) ? name : 0;
}

// The first symbol that may have that name, by its hash; 0: none has.
static size_t first_of(struct image const* i, uint32_t hash) {
    uint32_t const* const table = i->gnu_hash;
    if (!holds(i, table, 16) || !table[0]) return 0;
    uint32_t const* const bucket = (uint32_t const*)((uint64_t const*)(table + 4) + table[2]) + hash % table[0];
    return holds(i, bucket, 4) ? *bucket : 0;
}

// Null: there is no such function. There are hundreds, whose names begin alike.
static Elf64_Sym const* find_function(struct image const* i, char const* wanted) {
    uint32_t hash = 5381;
    for (unsigned char const* c = (unsigned char const*)wanted; *c; ++c) hash = hash * 33 + *c;
    size_t k = i->gnu_hash ? first_of(i, hash) : 0;
    for (int is_last = i->gnu_hash && !k; k < i->count && !is_last; ++k) {
        char const* const name = function_name(i, k);
        if (name && is_same(name, wanted)) return i->symbols + k;
        if (!i->gnu_hash) continue;
        uint32_t const* const chain = (uint32_t const*)((uint64_t const*)(i->gnu_hash + 4) + i->gnu_hash[2]) + i->gnu_hash[0];
        uint32_t const* const at = chain + (k - i->gnu_hash[1]);
        is_last = !holds(i, at, 4) || (*at & 1);
    }
    return 0;
}

// The address of what is marked so in memory that is written to; 0: there is none.
static uint64_t place_of(struct image const* i, char const* mark) {
    Elf64_Ehdr const* const h = (void*)i->bytes;
    Elf64_Phdr const* const p = (void*)(i->bytes + h->e_phoff);
    for (int k = 0; k < h->e_phnum; ++k) {
        unsigned char* const data = i->bytes + p[k].p_offset;
        if (p[k].p_type != PT_LOAD || !(p[k].p_flags & PF_W) || !holds(i, data, p[k].p_filesz)) continue;
        unsigned char const* const at = find_in(data, p[k].p_filesz, mark);
        if (at) return p[k].p_vaddr + (uint64_t)(at - data);
    }
    return 0;
}

// Whether its dynamic section can be written to in memory.
static int has_writable_dynamic(struct image const* i) {
    Elf64_Ehdr const* const h = (void*)i->bytes;
    Elf64_Phdr const* const p = (void*)(i->bytes + h->e_phoff);
    uint64_t const at = (uint64_t)((unsigned char*)i->dynamic - i->bytes);
    for (int k = 0; k < h->e_phnum; ++k) {
        if (p[k].p_type == PT_LOAD && (p[k].p_flags & PF_W) && at >= p[k].p_offset && at - p[k].p_offset < p[k].p_filesz) return 1;
    }
    return 0;
}
