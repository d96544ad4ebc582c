// SPDX-License-Identifier: Apache-2.0
//
// What hook.c fills in of its two forms: a copy of the stand-in, where nobody finds a function, and the bridge in front of it (bridge.c), which has
// the functions of the real library and leads them to that copy.
#pragma once

#include "image.h"

// What the bridge is built with; see bridge.c and CMakeLists.txt. Values are shorter and end in a zero.
#define RUNPATH_MARK "/KILN_RUNPATH_"
#define NEEDED_MARK "KILN_NEEDED_"
#define NEEDED_ROOM 100
#define SLOTS_MARK "KILN_SLOTS_"

// Where the hook writes when both are loaded.
struct joints {
    uint64_t slots;     // in the bridge: where its jumps lead,
    size_t count;       // so many
    uint64_t first;     // in the bridge: the first jump
    uint64_t note;      // in the copy: the real path
    uint64_t at_exit;   // in the copy: where its library's calls of __cxa_atexit() go,
    uint64_t finalize;  // and those of __cxa_finalize()
};

// Overwrites what stands at the mark; there is room for `room` characters.
static int fill_in(unsigned char* data, size_t bytes, char const* mark, size_t room, char const* value) {
    size_t const length = length_of(value);
    unsigned char* const at = find_in(data, bytes, mark);
    if (!at || length >= room) return 0;
    memcpy(at, value, length + 1);
    return 1;
}

// The copy: without functions that anybody finds, and without a name.
static void hide_all(struct image* copy) {
    for (size_t n = 0; n < copy->count; ++n) {
        char* const name = function_name(copy, n);
        if (name) *name = '\1';
    }
    Elf64_Dyn* const soname = entry_of(copy, DT_SONAME);
    if (soname) soname->d_un.d_val = 0;
}

static uint32_t elf_hash(char const* name) {
    uint32_t h = 0;
    for (; *name; ++name) {
        h = (h << 4) + (unsigned char)*name;
        h = (h ^ ((h >> 24) & 0xf0)) & 0x0fffffff;
    }
    return h;
}

// Every version that the bridge defines is called as the soname is.
static int name_versions(struct image const* bridge, char const* soname) {
    Elf64_Dyn const* const at = entry_of(bridge, DT_VERDEF);
    Elf64_Verdef* one = at ? at_address(bridge, at->d_un.d_ptr) : 0;
    while (holds(bridge, one, sizeof *one)) {
        Elf64_Verdaux* const name = (void*)((char*)one + one->vd_aux);
        if (!holds(bridge, name, sizeof *name)) return 0;
        one->vd_hash = elf_hash(soname);
        name->vda_name = (uint32_t)(soname - bridge->strings);
        if (!one->vd_next) return 1;
        one = (void*)((char*)one + one->vd_next);
    }
    return 0;
}

// It needs "kiln-ID-SONAME", whose end is its own soname.
static int name_in_bridge(struct image* bridge, char const* id, char const* called) {
    char needed[NEEDED_ROOM];
    size_t const length = join(needed, sizeof needed, "kiln-", id, "-", called, (char*)0);
    Elf64_Dyn const* const needs = entry_of(bridge, DT_NEEDED);
    Elf64_Dyn* const soname = entry_of(bridge, DT_SONAME);
    if (!length || !needs || !soname || !fill_in(bridge->bytes, bridge->size, NEEDED_MARK, NEEDED_ROOM, needed)) return 0;
    soname->d_un.d_val = needs->d_un.d_val + length - length_of(called);
    return soname->d_un.d_val < bridge->string_bytes && name_versions(bridge, bridge->strings + soname->d_un.d_val);
}

// See bridge.c: two for when it is opened and closed, then one for each jump, in the order that those have.
enum { slot_opened, slot_closed, first_jump, jump_bytes = 16 };

// Where a function is in the stand-in; la_objopen() adds where that is. 0: it has none.
static uint64_t address_in(struct image const* standin, char const* name) {
    Elf64_Sym const* const found = find_function(standin, name);
    return found ? found->st_value : 0;
}

// Every export the real library lacks is made unfindable: dlsym tells the truth.
static int fill_slots(struct joints* j, struct image* bridge, struct image const* real, struct image const* standin) {
    uint64_t first = UINT64_MAX;
    j->count = first_jump;
    for (size_t n = 0; n < bridge->count; ++n) {
        if (!exported(bridge, n)) continue;
        first = bridge->symbols[n].st_value < first ? bridge->symbols[n].st_value : first;
        ++j->count;
    }
    j->first = first;
    j->slots = place_of(bridge, SLOTS_MARK);
    uint64_t* const slot = j->slots ? at_address(bridge, j->slots) : 0;
    if (!holds(bridge, slot, j->count * sizeof *slot)) return 0;
    slot[slot_opened] = address_in(standin, "kiln_opened");
    slot[slot_closed] = address_in(standin, "kiln_closed");
    j->at_exit = address_in(standin, "kiln_at_exit");
    j->finalize = address_in(standin, "kiln_finalize");
    for (size_t n = 0; n < bridge->count; ++n) {
        char* const name = exported(bridge, n);
        uint64_t const at = name ? first_jump + (bridge->symbols[n].st_value - first) / jump_bytes : 0;
        if (!name) continue;
        if (at >= j->count) return 0;
        slot[at] = find_function(real, name) ? address_in(standin, name) : 0;
        if (!slot[at]) *name = '\1';
    }
    return slot[slot_opened] && slot[slot_closed] && j->at_exit && j->finalize;
}

static int exports_all(struct image const* template, struct image const* real) {
    for (size_t n = 0; n < real->count; ++n) {
        char const* const name = exported(real, n);
        if (name && !find_function(template, name)) return 0;
    }
    return 1;
}
