// SPDX-License-Identifier: Apache-2.0
//
// What hook.c writes over in the loader's own record of a library, so that it is known by the file it stands for. Behind the public part of
// a link map glibc has a structure that differs from version to version: a field is found by what it must hold, between that part and
// the list of the library's names, which lies in the same block. What is not found stays as it is.
#pragma once

#include "image.h"

#include <link.h>

enum { first_private_word = 8 };

// How many words there are of it.
static size_t words_of(struct link_map const* map) {
    uint64_t const begin = (uint64_t)map, end = ((uint64_t const*)map)[first_private_word - 1];
    return end > begin && end - begin <= 8192 ? (end - begin) / 8 : 0;
}

// The file by which the loader finds it to be loaded already.
static int change_file(struct link_map* map, uint64_t device, uint64_t from, uint64_t to_device, uint64_t to) {
    uint64_t* const word = (uint64_t*)map;
    size_t const count = words_of(map);
    for (size_t k = first_private_word; k + 1 < count; ++k) {
        if (word[k] != device || word[k + 1] != from) continue;
        word[k] = to_device;
        word[k + 1] = to;
        return 1;
    }
    return 0;
}

// A text of the kernel's length: it looks, so that nothing is read that is none.
static int is_path(char const* text, char const* wanted) {
    struct stat about;
    return (uintptr_t)text >= 4096 && bare_stat(text, &about) && is_same(text, wanted);
}

// Its folder, as dlinfo() tells it; never longer than it was.
static void change_origin(struct link_map* map, char const* from, char const* to) {
    static size_t last;  // where it was found
    char* const* const word = (char* const*)map;
    size_t const count = words_of(map);
    if (length_of(to) > length_of(from)) return;
    if (last >= count || last < first_private_word || !is_path(word[last], from)) {
        for (last = first_private_word; last < count && !is_path(word[last], from);) ++last;
    }
    if (last < count) memcpy(word[last], to, length_of(to) + 1);
}

// The name that people see is the program's own, written in place and never longer than what was there.
static void change_name(struct link_map* map, char const* name) {
    if (length_of(name) <= length_of(map->l_name)) memcpy(map->l_name, name, length_of(name) + 1);
}

// The text of its first entry of that kind; null: it has none.
static char const* text_of(struct link_map const* map, int64_t tag, Elf64_Dyn** at) {
    char const* strings = 0;
    *at = 0;
    for (Elf64_Dyn* d = map->l_ld; d && d->d_tag != DT_NULL; ++d) {
        if (d->d_tag == DT_STRTAB) strings = (char*)(d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr : d->d_un.d_ptr);
        if (d->d_tag == tag && !*at) *at = d;
    }
    return strings && *at ? strings + (*at)->d_un.d_val : 0;
}

// A table of it, by its entry; null: it has none. glibc has written addresses over most.
static void* table_of(struct link_map const* map, int64_t tag, Elf64_Dyn** at) {
    *at = 0;
    for (Elf64_Dyn* d = map->l_ld; d && d->d_tag != DT_NULL; ++d) {
        if (d->d_tag == tag) *at = d;
    }
    return !*at ? 0 : (void*)((*at)->d_un.d_ptr < map->l_addr ? (*at)->d_un.d_ptr + map->l_addr : (*at)->d_un.d_ptr);
}

static size_t symbol_count(struct link_map const* map) {
    struct image const all_memory = {.size = SIZE_MAX};
    Elf64_Dyn* at;
    uint32_t const* const table = table_of(map, DT_HASH, &at);
    return table ? table[1] : count_by_gnu_hash(&all_memory, table_of(map, DT_GNU_HASH, &at));
}

// One that is loaded, as what is mapped; the loader has looked at it.
static int look_at_loaded(struct image* i, struct link_map const* map) {
    Elf64_Dyn* at;
    memset(i, 0, sizeof *i);
    i->size = i->string_bytes = SIZE_MAX;
    i->symbols = table_of(map, DT_SYMTAB, &at);
    i->strings = table_of(map, DT_STRTAB, &at);
    i->gnu_hash = table_of(map, DT_GNU_HASH, &at);
    i->count = symbol_count(map);
    return i->symbols && i->strings && i->count;
}

// A function that it imports, and who is to answer instead.
struct instead {
    char const* name;
    uint64_t by;
};

// Before it is relocated: the loader is given a copy of its symbols in which these are its own, and looks for them nowhere. Null, or the copy.
static void* change_imports(struct link_map* map, struct instead const* changes, size_t many, size_t* bytes) {
    Elf64_Dyn *names_at, *at;
    char const* const names = table_of(map, DT_STRTAB, &names_at);
    Elf64_Sym const* const symbols = table_of(map, DT_SYMTAB, &at);
    size_t const count = names && symbols ? symbol_count(map) : 0;
    *bytes = count * sizeof *symbols;
    Elf64_Sym* const copy = count ? bare_map(*bytes, PROT_READ | PROT_WRITE, -1) : 0;
    if (!copy) return 0;
    memcpy(copy, symbols, *bytes);
    for (size_t k = 0; k < count * many; ++k) {
        Elf64_Sym* const one = copy + k / many;
        if (one->st_shndx != SHN_UNDEF || !is_same(names + one->st_name, changes[k % many].name)) continue;
        one->st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
        one->st_other = STV_HIDDEN;
        one->st_shndx = 1;  // any
        one->st_value = changes[k % many].by - map->l_addr;
    }
    at->d_un.d_ptr = at->d_un.d_ptr < map->l_addr ? (uint64_t)copy - map->l_addr : (uint64_t)copy;
    return copy;
}
