// SPDX-License-Identifier: Apache-2.0
//
// The loader's side of `kiln run` (LD_AUDIT): when glibc is about to open a libnvrtc or libnvJitLink, it is given a stand-in
// with the same soname, version node and exports. No libc (bare.h), no state but a small table; the loader holds its lock in
// every callback. Nothing is wrapped or patched in the program.
//
// What the loader is given is a bridge: an empty library with the soname and version node of the real one, which needs
// "kiln-ID-SONAME". That is the stand-in: it has no soname, and is found by search in a run path that leads nowhere and is long
// enough for any name to be written over it. One bridge and one stand-in for each file, however that is called. The bridge goes
// at the last dlclose(), as the real library would. The stand-in cannot (threads, keys and handlers of its own): it stays, under a name
// that nobody asks for and with its functions hidden, until the same file is opened again. So what is opened next is looked for as if
// nothing had been open before.
//
// A library found by search (DT_NEEDED, dlopen of a bare name): glibc asks for every candidate and keeps the name it searched,
// not the one it opened. So the link map says what it would have said. One opened by path: glibc asks once and keeps the answer as
// the library's name and origin, which CuPy reads to find CUDA's headers. So the program's name is written over it.
//
// Which file a stand-in stands for is written into its memory before it runs: what the program called it may be relative, or
// not its soname.
//
// "DIR/.//./libnvrtc.so.13" (OWN_SPELLING at its end) is let through: so the stand-in opens the real one, which then has no soname by which
// others could find it.
//
// A file is in use through a stand-in or as it is, never both: what one makes the other cannot read. stand_in_for() decides that.
//
// Whatever is not as expected (an unknown soname, an export the stand-in lacks, no place to write) leaves the library alone, and
// a line in the log of the run says so.
#define _GNU_SOURCE
#include "bare.h"
#include "intercept/filters.h"

#include <elf.h>
#include <link.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

#define MOST_PATH 512
#define MOST_NAME 4096  // that the kernel takes
#define MOST_KNOWN 64

// What the bridge is built with; see bridge.c and CMakeLists.txt. Values are shorter and end in a zero.
#define RUNPATH_MARK "/KILN_RUNPATH_"
#define NEEDED_MARK "KILN_NEEDED_"
#define NEEDED_ROOM 100

// Where a stand-in keeps the path of its real library, and how it opens that; see standin.cpp and compiler_library.cpp.
#define REAL_PATH_MARK "KILN_REAL_PATH_"
#define OWN_SPELLING "/.//./"

// Begins what is said of a library that was left alone; see run_log.hpp.
#define LEFT_ALONE_MARK "loaded without Kiln: "

// ---- ELF files, mapped and never trusted

struct image {
    unsigned char* bytes;
    size_t size;
    Elf64_Sym const* symbols;
    size_t count;
    char* strings;
    size_t string_bytes;
    char const* soname;
    Elf64_Dyn* dynamic;
    size_t entries;
    uint32_t* gnu_hash;
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

// The name of symbol `k` if it is a function of the API that others can find.
static char* exported(struct image const* i, size_t k) {
    Elf64_Sym const* const s = i->symbols + k;
    if (s->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s->st_info) != STT_FUNC || ELF64_ST_BIND(s->st_info) == STB_LOCAL) return 0;
    if (s->st_name >= i->string_bytes) return 0;
    char* const name = i->strings + s->st_name;
    return starts_with(name, "nv") || starts_with(name, "__nv") ? name : 0;
}

static int exports(struct image const* i, char const* wanted) {
    for (size_t k = 0; k < i->count; ++k) {
        char const* const name = exported(i, k);
        if (name && is_same(name, wanted)) return 1;
    }
    return 0;
}

// ---- settings

// From the environment as it was when the process began; programs may write over that.
static char templates[MOST_PATH], copies[MOST_PATH], log_file[MOST_PATH];
static int filters = -1;  // that `kiln run` is under; -1: it has not told

static int number_in(char const* digits) {
    int out = *digits ? 0 : -1;
    for (; *digits >= '0' && *digits <= '9'; ++digits) out = out * 10 + (*digits - '0');
    return out;
}

__attribute__((constructor)) static void keep_settings(int count, char** words, char** environment) {
    (void)count;
    (void)words;
    static char const from[] = "KILN_RUN_STANDINS=", to[] = "KILN_RUN_COPIES=", said[] = "KILN_RUN_LOG=", under[] = "KILN_RUN_FILTERS=";
    for (; environment && *environment; ++environment) {
        if (starts_with(*environment, from)) join(templates, sizeof templates, *environment + sizeof from - 1, (char*)0);
        if (starts_with(*environment, under)) filters = number_in(*environment + sizeof under - 1);
        if (starts_with(*environment, to)) join(copies, sizeof copies, *environment + sizeof to - 1, (char*)0);
        if (starts_with(*environment, said)) join(log_file, sizeof log_file, *environment + sizeof said - 1, (char*)0);
    }
}

// ---- a stand-in for each real file

// The loader knows objects by pointers into this: entries are never moved or dropped.
struct known {
    struct stat about;     // the file, as it was when the copy was made
    char real[MOST_PATH];   // where it is, from the root
    char asked[MOST_PATH];  // what the program calls it, where that is not too long
    char copy[MOST_PATH];   // empty: there is no stand-in
    char soname[NEEDED_ROOM];
    char id[20];
    uint64_t note;             // where in the copy the real path goes
    uint64_t hashes;           // where in the copy those of its functions begin
    size_t count;              // how many
    struct link_map* standin;  // where it is loaded
    size_t room;               // for its name
    int is_hidden;
    int is_named;  // `asked` is what the bridge is called
    int bridges;   // loaded
    int plain;     // times that it is loaded as it is
};
static struct known table[MOST_KNOWN] __attribute__((aligned(16)));
static int used;

// What an object is, for when it is closed: a file of the table and one of these, or the program. Anything else has its link map there.
enum what { is_bridge = 1, is_standin = 2, is_plain = 3, is_program = 4, is_elsewhere = 5, all_kinds = 7 };
static uintptr_t cookie_of(struct known const* k, enum what kind) { return (uintptr_t)k | kind; }

// What was answered last, which is what the loader opens next: under that name.
static struct {
    struct known* file;
    enum what kind;
    char name[2 * MOST_NAME];   // of the object that is opened
    char asked[2 * MOST_NAME];  // what the program or the loader called it
} answer;
static char bridge_path[2 * MOST_NAME];
static int lent = -1;         // a descriptor that the loader opens a bridge by
static char const* why_left;  // the file that was asked for last, if it was
static int has_program;       // its object is known
static int is_ending;         // the process: nothing is taken from anybody any more

static uint64_t mixed(uint64_t h, void const* data, size_t bytes) {
    for (unsigned char const* c = data; bytes--; ++c) h = (h ^ *c) * 1099511628211u;
    return h;
}

static int write_whole(int fd, unsigned char const* data, size_t bytes) {
    while (bytes) {
        long const n = bare_write(fd, data, bytes);
        if (n <= 0) return 0;
        data += n;
        bytes -= (size_t)n;
    }
    return 1;
}

// The file appears whole or not at all, and not where nothing may be executed. In every container a process has the same number:
// what one that was killed has left must not stand in the way of all that follow.
static int publish(char const* path, unsigned char const* data, size_t bytes) {
    char part[MOST_PATH + 32], process[17];
    uint64_t const who[] = {bare_getpid(), (uintptr_t)part, (uintptr_t)templates};  // where things lie is another place each time
    write_hex(process, mixed(14695981039346656037u, who, sizeof who));
    if (bytes > bare_largest_file()) return 0;  // a limit of the program's, and a signal that would end it
    if (!join(part, sizeof part, path, ".", process, ".part", (char*)0)) return 0;
    int const fd = bare_open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (fd < 0) return 0;
    void* const trial = write_whole(fd, data, bytes) ? bare_map(4096, PROT_READ | PROT_EXEC, fd) : 0;
    if (trial) bare_unmap(trial, 4096);
    bare_close(fd);
    int const good = trial && bare_rename(part, path);
    if (!good) bare_unlink(part);
    return good;
}

// Whether that file is there already, byte by byte: one that was damaged, or torn by a loss of power, would end the program.
static int is_there(char const* path, unsigned char const* data, size_t bytes) {
    struct image kept;
    int const same = map_file(&kept, path) && kept.size == bytes && kept.about.st_uid == bare_geteuid() && is_equal(kept.bytes, data, bytes);
    unmap(&kept);
    return same;
}

static int keep(char const* path, struct image const* what) {
    return is_there(path, what->bytes, what->size) || publish(path, what->bytes, what->size);
}

static int exists(char const* path) {
    struct stat about;
    return bare_stat(path, &about);
}

// Overwrites what stands at the mark; there is room for `room` characters.
static int fill_in(unsigned char* data, size_t bytes, char const* mark, size_t room, char const* value) {
    size_t const length = length_of(value);
    unsigned char* const at = find_in(data, bytes, mark);
    if (!at || length >= room) return 0;
    memcpy(at, value, length + 1);
    return 1;
}

// The template, with every export the real library lacks made unfindable: dlsym tells the truth. Null, or why there is none.
static char const* make_copy(struct known* k, struct image const* real, struct image* template) {
    for (size_t n = 0; n < real->count; ++n) {
        char const* const name = exported(real, n);
        if (name && !exports(template, name)) return "it has functions that this Kiln does not know";
    }
    for (size_t n = 0; n < template->count; ++n) {
        char* const name = exported(template, n);
        if (name && !exports(real, name)) *name = '\1';
    }
    Elf64_Dyn* const soname = entry_of(template, DT_SONAME);
    if (soname) soname->d_un.d_val = 0;
    return keep(k->copy, template) ? 0 : "there is no place for its stand-in";
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

// Its soname is the end of what it needs.
static int fill_bridge(struct known const* k, struct image* bridge) {
    char needed[NEEDED_ROOM];
    size_t const length = join(needed, sizeof needed, "kiln-", k->id, "-", k->soname, (char*)0);
    Elf64_Dyn const* const needs = entry_of(bridge, DT_NEEDED);
    Elf64_Dyn* const soname = entry_of(bridge, DT_SONAME);
    if (!length || !needs || !soname || !fill_in(bridge->bytes, bridge->size, NEEDED_MARK, NEEDED_ROOM, needed)) return 0;
    soname->d_un.d_val = needs->d_un.d_val + length - length_of(k->soname);
    return soname->d_un.d_val < bridge->string_bytes && name_versions(bridge, bridge->strings + soname->d_un.d_val);
}

// What the loader would not take for a name but for a word to replace: $ORIGIN, $LIB, $PLATFORM, ${ORIGIN}.
static int is_expanded(char const* path) {
    static char const* const words[] = {"$ORIGIN", "$LIB", "$PLATFORM", "${"};
    for (; *path; ++path) {
        for (int k = 0; k < 4; ++k) {
            if (starts_with(path, words[k])) return 1;
        }
    }
    return 0;
}

// One for each file, however that is called, so that the loader finds it to be the same. Its name is at least as long as the
// program's for it: la_objopen() writes that over it.
static int name_bridge(char const* folder, char const* file, char const* asked) {
    size_t const length = length_of(file), wanted = length_of(asked);
    size_t at = is_expanded(folder) ? 0 : join(bridge_path, MOST_NAME, folder, "/", (char*)0);
    while (at && at + length < wanted && at + length + 2 < MOST_NAME) {
        bridge_path[at++] = '.';
        bridge_path[at++] = '/';
    }
    if (!at || at + length >= MOST_NAME) return 0;
    memcpy(bridge_path + at, file, length + 1);
    return 1;
}

static void take_back_lent(void) {
    if (lent >= 0) bare_close(lent);
    lent = -1;
}

// Where there is no folder any more, but a stand-in is loaded.
static int lend_bridge(struct image const* bridge, char const* asked) {
    char number[24];
    take_back_lent();
    lent = bare_memory_file("kiln");
    if (lent < 0) return 0;
    write_decimal(number, (uint64_t)lent);
    return write_whole(lent, bridge->bytes, bridge->size) && name_bridge("/proc/self/fd", number, asked);
}

// Into bridge_path. Whoever has shut himself in has only what is there.
static int find_bridge(struct known const* k, char const* asked, int may_make) {
    char file[64], path[MOST_PATH + 16], kept[MOST_PATH];
    struct image bridge;
    if (!join(file, sizeof file, k->id, ".bridge", (char*)0)) return 0;
    int const has_name = name_bridge(copies, file, asked);
    if (!may_make) return has_name && exists(bridge_path);
    if (!join(path, sizeof path, templates, "/bridge.so", (char*)0)) return 0;
    int found = open_image(&bridge, path) && fill_bridge(k, &bridge);
    int const has_place = has_name && join(kept, sizeof kept, copies, "/", file, (char*)0);
    if (found && !(has_place && keep(kept, &bridge))) found = k->standin && lend_bridge(&bridge, asked);
    unmap(&bridge);
    return found;
}

// Where the stand-in keeps its real path, as an address in the file.
static uint64_t place_of_note(struct image const* template) {
    Elf64_Ehdr const* const h = (void*)template->bytes;
    Elf64_Phdr const* const p = (void*)(template->bytes + h->e_phoff);
    for (int k = 0; k < h->e_phnum; ++k) {
        unsigned char* const data = template->bytes + p[k].p_offset;
        if (p[k].p_type != PT_LOAD || !(p[k].p_flags & PF_W) || !holds(template, data, p[k].p_filesz)) continue;
        unsigned char const* const at = find_in(data, p[k].p_filesz, REAL_PATH_MARK);
        if (at) return p[k].p_vaddr + (uint64_t)(at - data);
    }
    return 0;
}

// Where the hashes of its functions are, which hide() changes: so they are written to.
static int prepare_hiding(struct known* k, struct image* template) {
    Elf64_Ehdr const* const h = (void*)template->bytes;
    Elf64_Phdr* const p = (void*)(template->bytes + h->e_phoff);
    uint32_t const* const table_of = template->gnu_hash;
    if (!table_of || table_of[1] > template->count) return 0;
    k->count = template->count - table_of[1];
    unsigned char const* const at = (void*)((uint64_t const*)(table_of + 4) + table_of[2]);
    unsigned char const* const chain = at + (size_t)table_of[0] * 4;
    if (!holds(template, chain, k->count * 4)) return 0;
    for (int n = 0; n < h->e_phnum; ++n) {
        uint64_t const from = (uint64_t)(chain - template->bytes) - p[n].p_offset;
        if (p[n].p_type != PT_LOAD || (uint64_t)(chain - template->bytes) < p[n].p_offset || from >= p[n].p_filesz) continue;
        p[n].p_flags |= PF_W;
        k->hashes = p[n].p_vaddr + from;
        return 1;
    }
    return 0;
}

// Same file, same copy: by inode and time, so that two libraries of one soname stay two, and a replaced one gets a new one.
static int name_copy(struct known* k, struct image const* real, struct image const* template) {
    uint64_t const facts[] = {real->about.st_dev, real->about.st_ino, real->size, (uint64_t)real->about.st_mtim.tv_sec,
                              (uint64_t)real->about.st_mtim.tv_nsec, template->size, (uint64_t)template->about.st_mtim.tv_sec,
                              (uint64_t)template->about.st_mtim.tv_nsec};
    write_hex(k->id, mixed(14695981039346656037u, facts, sizeof facts));
    return join(k->soname, sizeof k->soname, real->soname, (char*)0) &&
           join(k->copy, sizeof k->copy, copies, "/", k->id, "-", real->soname, (char*)0);
}

// Whether la_objopen() can take its soname from it.
static int has_writable_dynamic(struct image const* real) {
    Elf64_Ehdr const* const h = (void*)real->bytes;
    Elf64_Phdr const* const p = (void*)(real->bytes + h->e_phoff);
    for (int k = 0; k < h->e_phnum; ++k) {
        uint64_t const at = (uint64_t)((unsigned char*)real->dynamic - real->bytes);
        if (p[k].p_type == PT_LOAD && (p[k].p_flags & PF_W) && at >= p[k].p_offset && at - p[k].p_offset < p[k].p_filesz) return 1;
    }
    return 0;
}

// Null, or why there is none.
static char const* make_from(struct known* k, struct image const* real, char const* path) {
    struct image template;
    char const* why = "there is no stand-in for it";
    if (open_image(&template, path) && (k->note = place_of_note(&template)) && prepare_hiding(k, &template))
        why = name_copy(k, real, &template) ? make_copy(k, real, &template) : "there is no place for its stand-in";
    unmap(&template);
    return why;
}

static char const* make(struct known* k, char const* path) {
    char template[MOST_PATH];
    struct image real;
    char const* why = "there is no stand-in for it";
    if (open_image(&real, path) && has_writable_dynamic(&real) && templates[0] && copies[0] && real.soname && !last_slash(real.soname) &&
        join(template, sizeof template, templates, "/", real.soname, (char*)0))
        why = make_from(k, &real, template);
    unmap(&real);
    return why;
}

// ---- which file is meant

// What /proc/self has, each process has another of, and the next moment too: by the folder that it leads to now.
static int beyond_proc(char* to, char const* path) {
    char folder[MOST_PATH], link[MOST_PATH], number[24];
    char const* const slash = last_slash(path);
    if (!join(folder, sizeof folder, path, (char*)0)) return 0;
    folder[slash - path] = 0;
    int const fd = bare_open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return 0;
    write_decimal(number, (uint64_t)fd);
    int const good = join(link, sizeof link, "/proc/self/fd/", number, (char*)0) && bare_readlink(link, folder, sizeof folder) &&
                     folder[0] == '/' && join(to, MOST_PATH, folder, slash, (char*)0);
    bare_close(fd);
    return good;
}

// From the root; 0 where that is too long, or there is no way from there.
static int from_root(char* to, char const* path) {
    char directory[MOST_PATH];
    if (starts_with(path, "/proc/") || starts_with(path, "/dev/fd/")) return beyond_proc(to, path);
    if (path[0] == '/') return join(to, MOST_PATH, path, (char*)0) > 0;
    if (!bare_getcwd(directory, sizeof directory) || directory[0] != '/') return 0;
    return join(to, MOST_PATH, directory, "/", path, (char*)0) > 0;
}

static int is_same_file(struct stat const* one, struct stat const* other) {
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}
static int is_unchanged(struct stat const* one, struct stat const* other) {
    return one->st_size == other->st_size && one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

// As the loader does: what is loaded is known by its file, whatever was written into that since.
static struct known* find_loaded(struct stat const* about) {
    for (int k = 0; k < used; ++k) {
        if ((table[k].bridges || table[k].plain) && is_same_file(&table[k].about, about)) return table + k;
    }
    return 0;
}

// Null: there are too many.
static struct known* find_or_add(struct stat const* about) {
    struct known* const loaded = find_loaded(about);
    if (loaded) return loaded;
    for (int k = 0; k < used; ++k) {
        if (is_same_file(&table[k].about, about) && is_unchanged(&table[k].about, about)) return table + k;
    }
    if (used == MOST_KNOWN) return 0;
    table[used].about = *about;
    return table + used++;
}

// See shut_in.hpp: a filter that is not `kiln run`'s own may end who makes a copy.
static int is_shut_in(void) {
    if (filters < 0) return 0;
    char status[KILN_STATUS_ROOM];
    int const fd = bare_open(KILN_STATUS_FILE, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return 1;
    long const bytes = bare_read(fd, status, sizeof status);
    bare_close(fd);
    int const now = bytes > 0 ? kiln_filters_in(status, (size_t)bytes) : -1;
    return now < 0 || now > filters;
}

// Null, or why the file is left alone. `k` is not in use.
static char const* begin_to_serve(struct known* k, char const* path) {
    char whole[MOST_PATH];
    struct stat there;
    if (!from_root(whole, path) || !bare_stat(whole, &there) || !is_same_file(&there, &k->about)) return "its path is too long, or leads nowhere";
    memcpy(k->real, whole, length_of(whole) + 1);
    if (k->standin || (k->copy[0] && exists(k->copy))) return 0;
    char const* const why = make(k, path);
    if (why) k->copy[0] = 0;
    return why;
}

// The one place that decides who is served. Null: the library is left alone. `bridge_path` is what the loader is to open.
static struct known* stand_in_for(char const* path) {
    struct stat about;
    if (!bare_stat(path, &about) || !S_ISREG(about.st_mode)) return 0;
    struct known* k = find_loaded(&about);
    if (k && k->plain) {
        why_left = "it is in use without Kiln already, under another name";
        return 0;
    }
    int const is_in = is_shut_in();
    if (!k && is_in) return 0;
    if (!k && !(k = find_or_add(&about))) {
        why_left = "there are too many such libraries";
        return 0;
    }
    if (!k->bridges && (why_left = begin_to_serve(k, path))) return 0;
    if (find_bridge(k, path, !is_in)) return k;
    why_left = "there is no place for its stand-in";
    return 0;
}

// "libnvrtc.so", "libnvrtc.so.13"; not libnvrtc-builtins.
static int is_ours(char const* name) {
    static char const* const stems[] = {"libnvrtc.so", "libnvJitLink.so"};
    for (int k = 0; k < 2; ++k) {
        size_t const n = length_of(stems[k]);
        if (starts_with(name, stems[k]) && (name[n] == 0 || name[n] == '.')) return 1;
    }
    return 0;
}

// Whether the stand-in, or a worker, opens its real library.
static int is_own_spelling(char const* name, char const* slash) {
    size_t const n = sizeof OWN_SPELLING - 1;
    return (size_t)(slash + 1 - name) >= n && !memcmp(slash + 1 - n, OWN_SPELLING, n);
}

// ---- what is left alone

// A line of the run's log, as to_line() of run_log.cpp writes it. Nobody made the log yet: it is made as long as the run's door is there.
static void say_left_alone(char const* name, int is_nvrtc, char const* why) {
    char line[MOST_NAME + 2 * MOST_PATH], shown[MOST_NAME], door[MOST_PATH], process[24];
    size_t const n = length_of(log_file);
    if (!n || !join(door, sizeof door, log_file, (char*)0)) return;
    int const has_door = n > 4 && is_same(log_file + n - 4, ".log");
    if (has_door) door[n - 4] = 0;
    size_t at = 0;
    if (length_of(name) >= sizeof shown) name += length_of(name) + 1 - sizeof shown;  // what it is called is at the end
    for (; name[at] && at + 1 < sizeof shown; ++at) shown[at] = (unsigned char)name[at] < ' ' ? ' ' : name[at];
    shown[at] = 0;
    write_decimal(process, bare_getpid());
    char const* const library = is_nvrtc ? "nvrtc" : "nvjitlink";
    size_t const length = join(line, sizeof line, "forwarded\t", process, "\t0\t\t", library, "\t", shown,
                               "\t-\t0\t0\t0\t-\t-\t-\t", LEFT_ALONE_MARK, why, "\n", (char*)0);
    int const make = has_door && exists(door) ? O_CREAT : 0;
    int const fd = bare_open(log_file, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | make, 0600);
    struct stat about;
    if (fd < 0) return;
    if (bare_fstat(fd, &about) && (uint64_t)about.st_size + length <= bare_largest_file()) bare_write(fd, line, length);
    bare_close(fd);
}

// ---- what the loader calls

unsigned la_version(unsigned version) { return version < LAV_CURRENT ? version : LAV_CURRENT; }

// The loader opens `what` next; the object is then called `name`.
static char* give(struct known* k, enum what kind, char const* name, char const* what, char const* asked) {
    if (!join(answer.name, sizeof answer.name, name, (char*)0) || !join(answer.asked, sizeof answer.asked, asked, (char*)0)) return 0;
    answer.file = k;
    answer.kind = kind;
    return (char*)what;
}

// A bridge asks for its stand-in.
static char* behind_bridge(char const* name, char const* id) {
    for (int k = 0; k < used; ++k) {
        char* const copy = table[k].copy[0] && starts_with(id, table[k].id) ? give(table + k, is_standin, name, table[k].copy, name) : 0;
        if (copy) return copy;
    }
    return (char*)name;
}

// Whether any other name can be of interest: one of a file that is in use through a stand-in.
static int is_served_by_another_name(char const* name) {
    struct stat about;
    int any = 0;
    for (int k = 0; k < used; ++k) any |= table[k].bridges;
    if (!any || !bare_stat(name, &about)) return 0;
    struct known const* const k = find_loaded(&about);
    return k && k->bridges;
}

// Where the object lies that asks: as the loader has it for who has been loaded by a whole path. 0: unknown.
static int origin_of(uintptr_t cookie, char* to, size_t room) {
    if (cookie == is_program) {
        if (!bare_readlink("/proc/self/exe", to, room)) return 0;
    } else {
        struct link_map const* const map = cookie & all_kinds ? 0 : (void*)cookie;
        if (!map || !map->l_name || !join(to, room, map->l_name, (char*)0)) return 0;
    }
    char* const slash = to[0] == '/' ? last_slash(to) : 0;
    if (slash) *slash = 0;
    return slash != 0;
}

// The name that the loader will make of one with words for it; null where that cannot be known.
static char const* expanded(char const* name, uintptr_t cookie) {
    static char const* const starts[] = {"$ORIGIN/", "${ORIGIN}/"};
    static char whole[2 * MOST_NAME];
    char origin[MOST_NAME];
    for (int k = 0; k < 2; ++k) {
        char const* const rest = name + length_of(starts[k]) - 1;
        if (!starts_with(name, starts[k]) || is_expanded(rest) || is_shut_in() || !origin_of(cookie, origin, sizeof origin)) continue;
        return join(whole, sizeof whole, origin, rest, (char*)0) ? whole : 0;
    }
    return 0;
}

static char* answer_for(char const* name, unsigned flag) {
    char const* const slash = last_slash(name);
    if (is_own_spelling(name, slash) || (!is_ours(slash + 1) && !is_served_by_another_name(name))) return 0;
    struct known* const k = stand_in_for(name);
    return k ? give(k, is_bridge, flag == LA_SER_ORIG ? bridge_path : name, bridge_path, name) : 0;
}

char* la_objsearch(char const* name, uintptr_t* cookie, unsigned flag) {
    char const* const slash = last_slash(name);
    if (!slash) return (char*)name;  // its candidates follow
    answer.file = 0;
    why_left = 0;
    take_back_lent();
    if (*cookie == is_elsewhere) return (char*)name;
    if (starts_with(name, RUNPATH_MARK) && starts_with(slash + 1, "kiln-")) return behind_bridge(name, slash + 6);
    char const* const whole = flag == LA_SER_ORIG && is_expanded(name) ? expanded(name, *cookie) : name;
    if (!whole) why_left = "its path has words for the loader in it";
    char* const found = whole ? answer_for(whole, flag) : 0;
    return found ? found : (char*)name;
}

// The name that people see is the program's own, written in place and never longer than what was there.
static void rename_to(struct link_map* map, size_t room, char const* name) {
    if (length_of(name) <= room) memcpy(map->l_name, name, length_of(name) + 1);
}

// The program sees its own name for what its functions are in. Where the loader would find the stand-in by that, because it comes before a
// bridge of that name, it is spelled as nobody does.
static void name_standin(struct known* k, char const* name, int is_behind_bridge) {
    char other[2 * MOST_PATH];
    if (is_behind_bridge) return rename_to(k->standin, k->room, name);
    char* const slash = last_slash(name);
    if (!slash || !join(other, sizeof other, name, (char*)0)) return;
    other[slash - name] = 0;
    size_t const length = length_of(other);
    if (join(other + length, sizeof other - length, "/././/./", slash + 1, (char*)0)) rename_to(k->standin, k->room, other);
}

// Whether the loader finds its functions: by hashes that no name has, it does not. Twice is as before.
static void hide(struct known* k, int is_hidden) {
    if (!k->standin || k->is_hidden == is_hidden) return;
    uint32_t* const hash = (uint32_t*)(k->standin->l_addr + k->hashes);
    for (size_t n = 0; n < k->count; ++n) hash[n] ^= 0x80000000u;
    k->is_hidden = is_hidden;
}

static void tell_real_path(struct known* k) {
    char* const note = (char*)k->standin->l_addr + k->note;
    memcpy(note, k->real, length_of(k->real) + 1);
}

static void bridge_is_open(struct known* k, struct link_map* map) {
    rename_to(map, length_of(map->l_name), answer.asked);
    k->is_named = join(k->asked, sizeof k->asked, answer.asked, (char*)0) > 0;
    if (!k->is_named) memcpy(k->asked, k->real, sizeof k->real);
    ++k->bridges;
    if (k->standin) name_standin(k, k->asked, 0);
    if (k->standin && k->is_hidden) tell_real_path(k);
    hide(k, 0);
}

static void standin_is_open(struct known* k, struct link_map* map) {
    if (!starts_with((char*)map->l_addr + k->note, REAL_PATH_MARK)) return;
    k->standin = map;
    k->room = length_of(map->l_name);
    k->is_hidden = 0;
    tell_real_path(k);
    name_standin(k, k->asked, k->is_named);
}

static void bridge_is_closed(struct known* k) {
    --k->bridges;
    if (!k->standin) return;
    if (k->bridges) return name_standin(k, k->asked, 0);
    hide(k, 1);
    char name[NEEDED_ROOM + 32];
    if (join(name, sizeof name, RUNPATH_MARK "/kiln-", k->id, "-", k->soname, (char*)0)) rename_to(k->standin, k->room, name);
}

// Null: it has none. In memory, as the loader has it.
static char const* soname_of(struct link_map const* map, Elf64_Dyn** at) {
    char const* strings = 0;
    for (Elf64_Dyn* d = map->l_ld; d && d->d_tag != DT_NULL; ++d) {
        if (d->d_tag == DT_STRTAB) strings = (char*)(d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr : d->d_un.d_ptr);
        if (d->d_tag == DT_SONAME) *at = d;
    }
    return strings && *at ? strings + (*at)->d_un.d_val : 0;
}

// One that is loaded as it is must not be served under another name as long as it is.
static void note_plain(struct link_map* map, uintptr_t* cookie) {
    struct stat about;
    struct known* const k = bare_stat(map->l_name, &about) ? find_or_add(&about) : 0;
    if (!k) return;
    ++k->plain;
    *cookie = cookie_of(k, is_plain);
}

unsigned la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
    char* const slash = map->l_name ? last_slash(map->l_name) : 0;
    if (map->l_name && !map->l_name[0] && space == LM_ID_BASE && !has_program) {
        has_program = 1;
        *cookie = is_program;
    }
    if (!slash) return 0;
    struct known* const k = answer.file && is_same(map->l_name, answer.name) ? answer.file : 0;
    answer.file = 0;
    take_back_lent();
    if (k) {
        *cookie = cookie_of(k, answer.kind);
        if (answer.kind == is_bridge) bridge_is_open(k, map);
        else standin_is_open(k, map);
        return 0;
    }
    if (space != LM_ID_BASE) *cookie = is_elsewhere;
    Elf64_Dyn* at = 0;
    char const* const soname = soname_of(map, &at);
    int const is_compiler = soname && is_ours(soname);
    if (is_own_spelling(map->l_name, slash)) {
        if (is_compiler) at->d_un.d_val = 0;
        return 0;
    }
    int const is_called_so = is_ours(slash + 1) || starts_with(slash + 1, "libnvrtc.alt.so");
    if (!is_compiler && !is_called_so) return 0;
    if (is_compiler && space == LM_ID_BASE) note_plain(map, cookie);
    if (is_shut_in()) return 0;
    if (!why_left) why_left = is_called_so ? "there is no stand-in for it" : "its file is not called as a compiler is";
    say_left_alone(map->l_name, starts_with(is_compiler ? soname : slash + 1, "libnvrtc"),
                   space == LM_ID_BASE ? why_left : "it is in a namespace of its own");
    return 0;
}

// At the end of the process the program is first, and nothing else is to change.
unsigned la_objclose(uintptr_t* cookie) {
    struct known* const k = (struct known*)(*cookie & ~(uintptr_t)all_kinds);
    int const kind = (int)(*cookie & all_kinds);
    if (*cookie == is_program) is_ending = 1;
    if (is_ending || k < table || k >= table + MOST_KNOWN) return 0;
    if (kind == is_bridge) bridge_is_closed(k);
    if (kind == is_plain) --k->plain;
    if (kind == is_standin) k->standin = 0;
    return 0;
}
