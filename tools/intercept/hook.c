// SPDX-License-Identifier: Apache-2.0
//
// The loader's side of `kiln run` (LD_AUDIT): when glibc is about to open a libnvrtc or libnvJitLink, it is given a stand-in
// with the same soname, version node and exports. No libc (bare.h), no state but a small table; the loader holds its lock in
// every callback. Nothing is wrapped or patched in the program.
//
// A library found by search (DT_NEEDED, dlopen of a bare name): glibc asks for every candidate and keeps the name it searched,
// not the one it opened. So the link map says what it would have said.
//
// A library opened by path: glibc asks once and keeps the answer as the library's name and origin, which CuPy reads to find
// CUDA's headers. So the answer is a bridge: an empty library which needs "kiln-ID-SONAME". That one is found by search, as
// above, in a run path that leads nowhere and is long enough for any name to be written over it.
//
// Which file a stand-in stands for is written into its memory before it runs: what the program called it may be relative, or
// not its soname.
//
// "DIR/.//./libnvrtc.so.13" (OWN_SPELLING) is let through: so the stand-in opens the real one.
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
#define MOST_KNOWN 32

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

static int read_dynamic(struct image* i, Elf64_Dyn const* d, size_t entries) {
    uint32_t const *gnu = 0, *sysv = 0;
    uint64_t soname = 0;
    for (size_t k = 0; k < entries && d[k].d_tag != DT_NULL; ++k) {
        switch (d[k].d_tag) {
            case DT_SYMTAB: i->symbols = at_address(i, d[k].d_un.d_ptr); break;
            case DT_STRTAB: i->strings = at_address(i, d[k].d_un.d_ptr); break;
            case DT_STRSZ: i->string_bytes = d[k].d_un.d_val; break;
            case DT_GNU_HASH: gnu = at_address(i, d[k].d_un.d_ptr); break;
            case DT_HASH: sysv = at_address(i, d[k].d_un.d_ptr); break;
            case DT_SONAME: soname = d[k].d_un.d_val; break;
            default: break;
        }
    }
    if (!i->string_bytes || !holds(i, i->strings, i->string_bytes) || i->strings[i->string_bytes - 1]) return 0;
    if (soname && soname < i->string_bytes) i->soname = i->strings + soname;
    if (sysv && holds(i, sysv, 8)) i->count = sysv[1];
    else if (gnu) i->count = count_by_gnu_hash(i, gnu);
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
        Elf64_Dyn const* const d = (void*)(i->bytes + p[k].p_offset);
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

// The loader keeps pointers to the answers: entries are never moved or dropped.
struct known {
    char asked[MOST_PATH];   // as the program or the loader spelled it
    char real[MOST_PATH];    // the same from the root
    char copy[MOST_PATH];    // empty: the library is left alone
    char bridge[MOST_PATH];  // empty: only who searches is served
    char id[20];
    uint64_t note;  // where in the copy the real path goes
};
static struct known table[MOST_KNOWN];
static int used;

// What was answered last, which is what the loader opens next.
static struct known const *bridged, *given;
static char given_for[2 * MOST_PATH];  // the name that was asked for

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

// Overwrites what stands at the mark; there is room for `room` characters.
static int fill_in(unsigned char* data, size_t bytes, char const* mark, size_t room, char const* value) {
    size_t const length = length_of(value);
    unsigned char* const at = find_in(data, bytes, mark);
    if (!at || length >= room) return 0;
    memcpy(at, value, length + 1);
    return 1;
}

// The template, with every export the real library lacks made unfindable: dlsym tells the truth.
static int make_copy(struct known const* k, struct image const* real, struct image* template) {
    for (size_t n = 0; n < real->count; ++n) {
        char const* const name = exported(real, n);
        if (name && !exports(template, name)) return 0;
    }
    for (size_t n = 0; n < template->count; ++n) {
        char* const name = exported(template, n);
        if (name && !exports(real, name)) *name = '\1';
    }
    return keep(k->copy, template);
}

static int make_bridge(struct known const* k, char const* soname) {
    char path[MOST_PATH + 16], needed[NEEDED_ROOM];
    struct image bridge;
    if (!join(path, sizeof path, templates, "/bridge.so", (char*)0) || !map_file(&bridge, path)) return 0;
    int const made = join(needed, sizeof needed, "kiln-", k->id, "-", soname, (char*)0) &&
                     fill_in(bridge.bytes, bridge.size, NEEDED_MARK, NEEDED_ROOM, needed) && keep(k->bridge, &bridge);
    unmap(&bridge);
    return made;
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
static int name_bridge(struct known* k) {
    char file[64];
    size_t const length = join(file, sizeof file, k->id, ".bridge", (char*)0);
    size_t at = is_expanded(copies) ? 0 : join(k->bridge, sizeof k->bridge, copies, "/", (char*)0);
    while (at && at + length < length_of(k->asked) && at + 2 < sizeof k->bridge) {
        k->bridge[at++] = '.';
        k->bridge[at++] = '/';
    }
    if (!at || at + length >= sizeof k->bridge) return 0;
    memcpy(k->bridge + at, file, length + 1);
    return 1;
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

// Same file, same copy: by inode and time, so that two libraries of one soname stay two, and a replaced one gets a new one.
static void name_copy(struct known* k, struct image const* real, struct image const* template) {
    uint64_t const facts[] = {real->about.st_dev, real->about.st_ino, real->size, (uint64_t)real->about.st_mtim.tv_sec,
                              (uint64_t)real->about.st_mtim.tv_nsec, template->size, (uint64_t)template->about.st_mtim.tv_sec,
                              (uint64_t)template->about.st_mtim.tv_nsec};
    write_hex(k->id, mixed(14695981039346656037u, facts, sizeof facts));
    join(k->copy, sizeof k->copy, copies, "/", k->id, "-", real->soname, (char*)0);
}

static void make(struct known* k, struct image const* real) {
    char path[MOST_PATH];
    struct image template;
    if (!templates[0] || !copies[0] || !real->soname || last_slash(real->soname)) return;
    if (!join(path, sizeof path, templates, "/", real->soname, (char*)0)) return;
    if (open_image(&template, path) && (k->note = place_of_note(&template))) {
        name_copy(k, real, &template);
        if (k->copy[0] && !make_copy(k, real, &template)) k->copy[0] = 0;
        if (k->copy[0] && !(name_bridge(k) && make_bridge(k, real->soname))) k->bridge[0] = 0;
    }
    unmap(&template);
}

static int exists(char const* path) {
    struct stat about;
    return bare_stat(path, &about);
}

// From the root; 0 where that is too long, or there is no way from there.
static int from_root(char* to, char const* path) {
    char directory[MOST_PATH];
    if (path[0] == '/') return join(to, MOST_PATH, path, (char*)0) > 0;
    if (!bare_getcwd(directory, sizeof directory) || directory[0] != '/') return 0;
    return join(to, MOST_PATH, directory, "/", path, (char*)0) > 0;
}

static struct known* stand_in_for(char const* path) {
    char whole[MOST_PATH];
    if (!from_root(whole, path)) return 0;
    for (int k = 0; k < used; ++k) {
        if (!is_same(table[k].asked, path) || !is_same(table[k].real, whole)) continue;
        // Asked for again after a dlclose(): somebody may have emptied the cache since.
        if (table[k].bridge[0] && !exists(table[k].bridge)) return 0;
        return table[k].copy[0] && exists(table[k].copy) ? table + k : 0;
    }
    struct image real;
    struct known* k = 0;
    if (open_image(&real, whole) && used < MOST_KNOWN) {
        k = table + used++;
        memcpy(k->asked, path, length_of(path) + 1);
        memcpy(k->real, whole, length_of(whole) + 1);
        make(k, &real);
    }
    unmap(&real);
    return k && k->copy[0] ? k : 0;
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
static void say_left_alone(char const* name, char const* why) {
    char line[3 * MOST_PATH], shown[MOST_PATH], door[MOST_PATH], process[24];
    size_t const n = length_of(log_file);
    if (!n || !join(door, sizeof door, log_file, (char*)0)) return;
    int const has_door = n > 4 && is_same(log_file + n - 4, ".log");
    if (has_door) door[n - 4] = 0;
    size_t at = 0;
    for (; name[at] && at + 1 < sizeof shown; ++at) shown[at] = (unsigned char)name[at] < ' ' ? ' ' : name[at];
    shown[at] = 0;
    write_decimal(process, bare_getpid());
    char const* const library = starts_with(last_slash(name) + 1, "libnvrtc") ? "nvrtc" : "nvjitlink";
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

static char* give(struct known const* k, char const* name) {
    given = join(given_for, sizeof given_for, name, (char*)0) ? k : 0;
    return given ? (char*)k->copy : (char*)name;
}

// A bridge asks for its stand-in.
static char* behind_bridge(char const* name, char const* id) {
    for (int k = -1; k < used; ++k) {
        struct known const* const one = k < 0 ? bridged : table + k;
        if (one && one->copy[0] && starts_with(id, one->id)) return give(one, name);
    }
    return (char*)name;
}

char* la_objsearch(char const* name, uintptr_t* cookie, unsigned flag) {
    (void)cookie;
    char const* const slash = last_slash(name);
    if (!slash) return (char*)name;  // its candidates follow
    if (starts_with(name, RUNPATH_MARK) && starts_with(slash + 1, "kiln-")) return behind_bridge(name, slash + 6);
    if (!is_ours(slash + 1) || is_own_spelling(name, slash)) return (char*)name;
    if (flag == LA_SER_ORIG && is_expanded(name)) return (char*)name;
    if (is_shut_in()) return (char*)name;
    struct known* const k = stand_in_for(name);
    if (!k) return (char*)name;
    if (flag != LA_SER_ORIG) return give(k, name);
    if (!k->bridge[0]) return (char*)name;
    bridged = k;
    return k->bridge;
}

// The name that people see is the program's own, written in place and never longer than what was there.
static void rename_to(struct link_map* map, char const* name) {
    if (length_of(name) <= length_of(map->l_name)) memcpy(map->l_name, name, length_of(name) + 1);
}

unsigned la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
    (void)cookie;
    char* const slash = map->l_name ? last_slash(map->l_name) : 0;
    if (!slash) return 0;
    if (bridged && is_same(map->l_name, bridged->bridge)) {
        rename_to(map, bridged->asked);
    } else if (given && is_same(map->l_name, given_for)) {
        char* const note = (char*)map->l_addr + given->note;
        if (starts_with(note, REAL_PATH_MARK)) memcpy(note, given->real, length_of(given->real) + 1);
        if (starts_with(map->l_name, RUNPATH_MARK)) rename_to(map, given->asked);
    } else if ((is_ours(slash + 1) || starts_with(slash + 1, "libnvrtc.alt.so")) && !is_own_spelling(map->l_name, slash) && !is_shut_in()) {
        say_left_alone(map->l_name, space == LM_ID_BASE ? "there is no stand-in for it" : "it is in a namespace of its own");
    }
    return 0;
}
