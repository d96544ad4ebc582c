// SPDX-License-Identifier: Apache-2.0
//
// The loader's side of `kiln run` (LD_AUDIT): when glibc is about to open a libnvrtc or libnvJitLink, it is given a library
// with the same soname, version node and exports. No libc (bare.h), no state but a small table; the loader holds its lock in
// every callback, so what is large is static: a thread may have little stack. Nothing is wrapped or patched in the program.
//
// What the loader is given is a bridge: a library with the soname, version node and functions of the real one, each of which is a jump. It
// needs "kiln-ID-SONAME". That is the stand-in, where the jumps lead: it has no soname and no functions that anybody finds, and is found by
// search in a run path that leads nowhere and is long enough for any name to be written over it. One bridge and one stand-in for
// each file, however that is called. The bridge is all that the program sees, opens and closes, and goes at the last dlclose(), as the
// real library would. The stand-in cannot (threads, keys and handlers of its own): it stays until the same file is opened again.
//
// A library found by search (DT_NEEDED, dlopen of a bare name): glibc asks for every candidate and keeps the name it searched,
// not the one it opened. So the link map says what it would have said. One opened by path: glibc asks once and keeps the answer as
// the library's name and origin, which CuPy and cuda.core read to find CUDA. So the program's own is written over both.
//
// The loader knows what it has loaded by its file, too. The bridge is given that of the real library: under whatever other name that is
// opened, and by whatever call, the loader finds the bridge. The real library is given one that no file has.
//
// Which file a stand-in stands for is written into its memory before it runs: what the program called it may be relative, or
// not its soname.
//
// "DIR/.//./libnvrtc.so.13" (OWN_SPELLING at its end) is let through: so the stand-in opens the real one, which then has no soname by which
// others could find it, and whose exit functions the stand-in keeps: see keep_exit_calls().
//
// A file is in use through a stand-in or as it is, never both: what one makes the other cannot read. stand_in_for() decides that.
//
// Who opens a library in a namespace of its own is not served. The loader does not say for which namespace it searches a bare name, so
// that it may be given a bridge for one: there the bridge needs the real library, and leads there. See lead_elsewhere().
//
// Whatever is not as expected (an unknown soname, an export the stand-in lacks, no place to write) leaves the library alone, and
// a line in the log of the run says so.
#define _GNU_SOURCE
#include "forms.h"
#include "intercept/filters.h"
#include "kept_file.h"
#include "loaded.h"

#define MOST_NAME 4096  // that the kernel takes
#define MOST_KNOWN 64

// Where a stand-in keeps the path of its real library, and how it opens that; see standin.cpp and compiler_library.cpp.
#define REAL_PATH_MARK "KILN_REAL_PATH_"
#define OWN_SPELLING "/.//./"

// Begins what is said of a library that was left alone; see run_log.hpp.
#define LEFT_ALONE_MARK "loaded without Kiln: "

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
    char real[MOST_PATH];  // where it is, from the root
    char beside[MOST_PATH + 2];  // the same, by a name that no bridge has
    char copy[MOST_PATH];  // empty: there is no stand-in
    char soname[NEEDED_ROOM];
    char id[20];
    unsigned char* bridge;  // filled in; null: not yet
    size_t bridge_bytes;
    struct joints joints;      // of the two
    struct link_map* standin;  // where it is loaded
    struct link_map* front;    // the bridge, where that is loaded
    int is_in_place;           // the loader finds the bridge by the real file
    int bridges;               // loaded
    int plain;                 // times that it is loaded as it is
    int was_plain;             // it was once: what it made the program may have still
    void* symbols;             // of the library, as the loader was given them; null: it has its own
    size_t symbol_bytes;
};
static struct known table[MOST_KNOWN] __attribute__((aligned(16)));
static int used;

// What an object is, for when it is closed: a file of the table and one of these, or the program. Anything else has its link map there.
enum what { is_bridge = 1, is_plain = 3, is_program = 4, is_elsewhere = 5, all_kinds = 7 };
static uintptr_t cookie_of(struct known const* k, enum what kind) { return (uintptr_t)k | kind; }

static char bridge_path[2 * MOST_NAME];  // that was given to the loader last,
static struct stat bridge_file;          // which is this one,
static char asked[2 * MOST_NAME];        // for this name
static int lent = -1;                    // a descriptor that the loader opens a bridge by
static struct known* away;           // its bridge in another namespace leads nowhere yet,
static struct link_map* away_front;  // which is this one
static struct known* out_of_place;       // its bridge is not found by the real file for the moment
static int is_answered;                  // the loader was given something else for it
static char const* why_left;             // the file that was asked for last, if it was
static int has_program;                  // its object is known
static int is_ending;                    // the process: nothing is taken from anybody any more

// Kept in memory: a folder that vanishes meanwhile takes nothing from a program. Null, or why there is none.
static char const* make_bridge(struct known* k, struct image const* real, struct image const* standin) {
    static char path[MOST_PATH + 16];
    struct image bridge = {0};
    char const* why = "there is no stand-in for it";
    if (k->bridge) bare_unmap(k->bridge, k->bridge_bytes);
    k->bridge = 0;
    if (join(path, sizeof path, templates, "/bridge.so", (char*)0) && open_image(&bridge, path)) {
        if (!exports_all(standin, real) || !exports_all(&bridge, real)) why = "it has functions that this Kiln does not know";
        else if (fill_slots(&k->joints, &bridge, real, standin) && name_in_bridge(&bridge, k->id, k->soname) && (k->bridge = bare_map(bridge.size, PROT_READ | PROT_WRITE, -1))) {
            memcpy(k->bridge, bridge.bytes, k->bridge_bytes = bridge.size);
            why = 0;
        }
    }
    unmap(&bridge);
    return why;
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

// How much of a path is the folder: at least the root.
static size_t folder_length(char const* path) {
    char const* const slash = last_slash(path);
    return !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
}

// What the loader would have as the folder of what is opened by that name.
static char const* origin_for(struct known const* k, char const* name) { return name[0] == '/' ? name : k->real; }

// Its name is at least as long as the program's for it, and its folder as the other's: la_objopen() writes those over them.
static int name_bridge(struct known const* k, char const* folder, char const* file, char const* name) {
    size_t const length = length_of(file), wanted = length_of(name), origin = folder_length(origin_for(k, name));
    size_t at = is_expanded(folder) ? 0 : join(bridge_path, MOST_NAME, folder, "/", (char*)0);
    while (at && (at + length < wanted || at < origin + 1) && at + length + 2 < MOST_NAME) {
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
static int lend_bridge(struct known const* k, char const* name) {
    char number[24];
    take_back_lent();
    occupy_standard_streams();
    lent = bare_memory_file("kiln");
    if (lent < 0) return 0;
    write_decimal(number, (uint64_t)lent);
    return write_whole(lent, k->bridge, k->bridge_bytes) && name_bridge(k, "/proc/self/fd", number, name);
}

// Into bridge_path. Whoever has shut himself in has only what is there.
static int find_bridge(struct known const* k, char const* name, int may_make) {
    static char kept[MOST_PATH];
    char file[64];
    if (!join(file, sizeof file, k->id, ".bridge", (char*)0)) return 0;
    int found = name_bridge(k, copies, file, name) && (!may_make || (join(kept, sizeof kept, copies, "/", file, (char*)0) && keep(kept, k->bridge, k->bridge_bytes)));
    if (!found && may_make && k->standin) found = lend_bridge(k, name);
    return found && bare_stat(bridge_path, &bridge_file);
}

// Same file, same copy: by inode and time, so that two libraries of one soname stay two, and a replaced one gets a new one.
static int name_copy(struct known* k, struct image const* real, struct image const* template) {
    uint64_t const facts[] = {real->about.st_dev, real->about.st_ino, real->size, (uint64_t)real->about.st_mtim.tv_sec,
                              (uint64_t)real->about.st_mtim.tv_nsec, template->size, (uint64_t)template->about.st_mtim.tv_sec,
                              (uint64_t)template->about.st_mtim.tv_nsec};
    write_hex(k->id, mixed(14695981039346656037u, facts, sizeof facts));
    if (!join(k->soname, sizeof k->soname, real->soname, (char*)0) ||
        !join(k->copy, sizeof k->copy, copies, "/", k->id, "-", real->soname + sizeof "lib" - 1, (char*)0))
        return 0;
    // "nvrtc-13": who looks for "nvrtc.so" among what is loaded is to find the bridge.
    for (char* c = k->copy + length_of(copies); *c; ++c) {
        if (!starts_with(c, ".so.")) continue;
        memmove(c, c + 3, length_of(c + 3) + 1);
        *c = '-';
    }
    return 1;
}

// Null, or why there is none.
static char const* make_copy(struct known const* k, struct image* template) {
    hide_all(template);
    return keep(k->copy, template->bytes, template->size) ? 0 : "there is no place for its stand-in";
}

// Null, or why there is none.
static char const* make_from(struct known* k, struct image const* real, char const* path) {
    struct image template;
    char const* why = "there is no stand-in for it";
    if (open_image(&template, path) && (k->joints.note = place_of(&template, REAL_PATH_MARK))) {
        why = name_copy(k, real, &template) ? 0 : "there is no place for its stand-in";
        if (!why) why = make_bridge(k, real, &template);
        if (!why) why = make_copy(k, &template);
    }
    unmap(&template);
    return why;
}

// Of one whose soname cannot be taken from it in memory there is none.
static char const* make(struct known* k, char const* path) {
    static char template[MOST_PATH];
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
    static char folder[MOST_PATH];
    char link[64], number[24];
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
    static char directory[MOST_PATH];
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
    static char status[KILN_STATUS_ROOM];
    int const fd = bare_open(KILN_STATUS_FILE, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return 1;
    long const bytes = bare_read(fd, status, sizeof status);
    bare_close(fd);
    int const now = bytes > 0 ? kiln_filters_in(status, (size_t)bytes) : -1;
    return now < 0 || now > filters;
}

// Null, or why the file is left alone. `k` is not in use.
static char const* begin_to_serve(struct known* k, char const* path) {
    static char whole[MOST_PATH];
    struct stat there;
    if (!from_root(whole, path) || !bare_stat(whole, &there) || !is_same_file(&there, &k->about)) return "its path is too long, or leads nowhere";
    memcpy(k->real, whole, length_of(whole) + 1);
    if (k->standin || (k->copy[0] && exists(k->copy))) return 0;
    char const* const why = make(k, path);
    if (why) k->copy[0] = 0;
    return why;
}

// The one place that decides who is served. Null: the loader is to open what it was asked for, which is left alone, or the file that a
// bridge is found by. Otherwise it is to open `bridge_path`.
static struct known* stand_in_for(char const* path) {
    struct stat about;
    if (!bare_stat(path, &about) || !S_ISREG(about.st_mode)) return 0;
    struct known* k = find_loaded(&about);
    if (k && k->plain) {
        why_left = "it is in use without Kiln already, under another name";
        return 0;
    }
    if (k && k->is_in_place) return 0;
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
    static char line[MOST_NAME + 2 * MOST_PATH], shown[MOST_NAME], door[MOST_PATH];
    char process[24];
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
    occupy_standard_streams();
    int const fd = bare_open(log_file, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | make, 0600);
    struct stat about;
    if (fd < 0) return;
    if (bare_fstat(fd, &about) && (uint64_t)about.st_size + length <= bare_largest_file()) bare_write(fd, line, length);
    bare_close(fd);
}

// ---- what the loader calls

unsigned la_version(unsigned version) { return version < LAV_CURRENT ? version : LAV_CURRENT; }
void la_preinit(uintptr_t* cookie) { (void)cookie, program_runs = 1; }

// Null: it is no name of a stand-in, "kiln-ID-SONAME".
static struct known* find_by_id(char const* name) {
    for (int k = 0; name && starts_with(name, "kiln-") && k < used; ++k) {
        if (table[k].id[0] && starts_with(name + 5, table[k].id)) return table + k;
    }
    return 0;
}

// A number that no file has.
static uint64_t no_file(struct stat const* about) { return ~(uint64_t)about->st_ino; }

static void move_bridge(struct known* k, uint64_t from, uint64_t to) {
    change_file(k->front, k->about.st_dev, from, k->about.st_dev, to);
}

// The stand-in opens its real library: that file is to be found, and not the bridge.
static void make_way(char const* name) {
    struct stat about;
    struct known* const k = bare_stat(name, &about) ? find_loaded(&about) : 0;
    if (!k || !k->is_in_place) return;
    move_bridge(k, k->about.st_ino, no_file(&k->about));
    out_of_place = k;
}

static void put_back(void) {
    if (out_of_place && out_of_place->is_in_place) move_bridge(out_of_place, no_file(&out_of_place->about), out_of_place->about.st_ino);
    out_of_place = 0;
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
    static char origin[MOST_NAME];
    for (int k = 0; k < 2; ++k) {
        char const* const rest = name + length_of(starts[k]) - 1;
        if (!starts_with(name, starts[k]) || is_expanded(rest) || is_shut_in() || !origin_of(cookie, origin, sizeof origin)) continue;
        return join(whole, sizeof whole, origin, rest, (char*)0) ? whole : 0;
    }
    return 0;
}

static char* answer_for(char const* name) {
    char const* const slash = last_slash(name);
    if (is_own_spelling(name, slash)) return make_way(name), (char*)0;
    return is_ours(slash + 1) && stand_in_for(name) ? bridge_path : 0;
}

char* la_objsearch(char const* name, uintptr_t* cookie, unsigned flag) {
    char const* const slash = last_slash(name);
    if (!slash) return (char*)name;  // its candidates follow
    why_left = 0;
    take_back_lent();
    put_back();
    if (*cookie == is_elsewhere) return (char*)name;
    if (starts_with(name, RUNPATH_MARK)) {
        struct known* const k = find_by_id(slash + 1);
        return k && k->copy[0] ? k->copy : (char*)name;
    }
    char const* const whole = flag == LA_SER_ORIG && is_expanded(name) ? expanded(name, *cookie) : name;
    if (!whole) why_left = "its path has words for the loader in it";
    if (!join(asked, sizeof asked, whole ? whole : name, (char*)0)) return (char*)name;
    char* const found = whole ? answer_for(whole) : 0;
    is_answered = found != 0;
    return found ? found : (char*)name;
}

// The stand-in is loaded: the jumps lead there, and it knows whom it stands for.
static void connect(struct known* k) {
    uint64_t* const slot = (uint64_t*)(k->front->l_addr + k->joints.slots);
    for (size_t n = 0; n < k->joints.count; ++n) slot[n] = slot[n] ? slot[n] + k->standin->l_addr : 0;
    char* const note = (char*)k->standin->l_addr + k->joints.note;
    memcpy(note, k->real, length_of(k->real) + 1);
    note[MOST_PATH] = (char)k->was_plain;
}

// The loader has the name and folder of the bridge's own file where that was opened by path.
static void name_front(struct known const* k, struct link_map* map) {
    static char folder[2 * MOST_NAME];
    if (!is_same(map->l_name, bridge_path)) return;
    char const* const whole = origin_for(k, asked);
    size_t const length = folder_length(whole);
    bridge_path[folder_length(bridge_path)] = 0;
    memcpy(folder, whole, length);
    folder[length] = 0;
    change_origin(map, bridge_path, folder);
    change_name(map, asked);
}

static void bridge_is_open(struct known* k, struct link_map* map) {
    name_front(k, map);
    ++k->bridges;
    k->front = map;
    k->is_in_place = change_file(map, bridge_file.st_dev, bridge_file.st_ino, k->about.st_dev, k->about.st_ino);
    if (k->standin) connect(k);
}

// Nothing of ours is there, nor told when it is opened and closed.
static void connect_elsewhere(struct link_map const* map) {
    struct image front, real;
    uint64_t* const slot = (uint64_t*)(away_front->l_addr + away->joints.slots);
    int const are_known = look_at_loaded(&front, away_front) && look_at_loaded(&real, map);
    for (size_t n = 0; n < away->joints.count; ++n) slot[n] = 0;
    for (size_t n = 0; are_known && n < front.count; ++n) {
        char const* const name = exported(&front, n);
        Elf64_Sym const* const found = name ? find_function(&real, name) : 0;
        uint64_t const at = first_jump + (front.symbols[n].st_value - away->joints.first) / jump_bytes;
        if (found && at < away->joints.count) slot[at] = map->l_addr + found->st_value;
    }
    away = 0;
}

// Where the real library is in that namespace already, the loader opens it no more.
static struct link_map* real_beside(struct known const* k, struct link_map const* map) {
    struct stat there;
    for (struct link_map* at = map->l_prev; at; at = at->l_prev) {
        if (at->l_name && at->l_name[0] && bare_stat(at->l_name, &there) && is_same_file(&there, &k->about)) return at;
    }
    return 0;
}

// In another namespace: what it needs is the real library, which the loader opens there next.
static void lead_elsewhere(struct known* k, struct link_map* map, Elf64_Dyn* needed) {
    Elf64_Dyn* at;
    char const* const strings = table_of(map, DT_STRTAB, &at);
    char const* const file = last_slash(k->real) + 1;
    size_t const folder = (size_t)(file - k->real);
    memcpy(k->beside, k->real, folder);
    if (!join(k->beside + folder, sizeof k->beside - folder, "./", file, (char*)0)) return;
    name_front(k, map);
    needed->d_un.d_val = (uint64_t)k->beside - (uint64_t)strings;
    away = k;
    away_front = map;
    struct link_map const* const there = real_beside(k, map);
    if (there) connect_elsewhere(there);
}

static void standin_is_open(struct known* k, struct link_map* map) {
    if (!starts_with((char*)map->l_addr + k->joints.note, REAL_PATH_MARK)) return;
    k->standin = map;
    change_name(map, k->copy);
    if (k->front) connect(k);
}

static void bridge_is_closed(struct known* k) {
    if (--k->bridges) return;
    k->front = 0;
    k->is_in_place = 0;
}

// One that is loaded as it is must not be served under another name as long as it is.
static void note_plain(struct link_map* map, uintptr_t* cookie) {
    struct stat about;
    struct known* const k = bare_stat(map->l_name, &about) ? find_or_add(&about) : 0;
    if (!k) return;
    ++k->plain;
    k->was_plain = 1;
    *cookie = cookie_of(k, is_plain);
}

// It is opened later than the program did: what it does at exit is not to be done before what the program has registered since. Of what it
// was opened from before nothing is loaded any more.
static void keep_exit_calls(struct known* k, struct link_map* map) {
    uint64_t const base = k->standin->l_addr;
    struct instead const changes[] = {{"__cxa_atexit", base + k->joints.at_exit}, {"__cxa_finalize", base + k->joints.finalize}};
    if (k->symbols) bare_unmap(k->symbols, k->symbol_bytes);
    k->symbols = change_imports(map, changes, 2, &k->symbol_bytes);
}

// Nobody finds the real library behind a stand-in: not by its soname, and not by its file.
static void hide_real(struct link_map* map, Elf64_Dyn* soname) {
    struct stat about;
    soname->d_un.d_val = 0;
    if (!bare_stat(map->l_name, &about)) return;
    struct known* const k = find_loaded(&about);
    if (k && k->standin) keep_exit_calls(k, map);
    change_file(map, about.st_dev, about.st_ino, about.st_dev, no_file(&about));
}

// A compiler that is loaded as it is.
static void left_alone(struct link_map* map, Lmid_t space, uintptr_t* cookie, char const* soname) {
    char const* const file = last_slash(map->l_name) + 1;
    int const is_called_so = is_ours(file) || starts_with(file, "libnvrtc.alt.so");
    if (!soname && !is_called_so) return;
    if (soname && space == LM_ID_BASE) note_plain(map, cookie);
    if (is_shut_in()) return;
    if (!why_left && (is_answered || !is_same(map->l_name, asked))) why_left = "it was opened by dlmopen()";
    if (!why_left) why_left = is_called_so ? "there is no stand-in for it" : "its file is not called as a compiler is";
    say_left_alone(map->l_name, starts_with(soname ? soname : file, "libnvrtc"), space == LM_ID_BASE ? why_left : "it is in a namespace of its own");
}

unsigned la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
    char* const slash = map->l_name ? last_slash(map->l_name) : 0;
    if (map->l_name && !map->l_name[0] && space == LM_ID_BASE && !has_program) {
        has_program = 1;
        *cookie = is_program;
    }
    if (!slash) return 0;
    take_back_lent();
    put_back();
    Elf64_Dyn* at;
    struct known* k = find_by_id(text_of(map, DT_NEEDED, &at));
    if (k && space != LM_ID_BASE) {
        *cookie = is_elsewhere;
        lead_elsewhere(k, map, at);
        return 0;
    }
    if (k) {
        *cookie = cookie_of(k, is_bridge);
        bridge_is_open(k, map);
        return 0;
    }
    if (starts_with(map->l_name, RUNPATH_MARK) && (k = find_by_id(slash + 1))) {
        standin_is_open(k, map);
        return 0;
    }
    if (space != LM_ID_BASE) *cookie = is_elsewhere;
    if (away && space != LM_ID_BASE && is_same(map->l_name, away->beside)) connect_elsewhere(map);
    char const* const soname = text_of(map, DT_SONAME, &at);
    int const is_compiler = soname && is_ours(soname);
    if (!is_own_spelling(map->l_name, slash)) left_alone(map, space, cookie, is_compiler ? soname : 0);
    else if (is_compiler) hide_real(map, at);
    why_left = 0;
    asked[0] = 0;
    return 0;
}

// The real libraries stay until the process is gone: others may be in them.
static void begin_to_end(void) {
    is_ending = 1;
    for (int k = 0; k < used; ++k) {
        if (table[k].front) ((uint64_t*)(table[k].front->l_addr + table[k].joints.slots))[slot_closed] = 0;
    }
}

// At the end of the process the program is first, and nothing else is to change.
unsigned la_objclose(uintptr_t* cookie) {
    struct known* const k = (struct known*)(*cookie & ~(uintptr_t)all_kinds);
    int const kind = (int)(*cookie & all_kinds);
    if (*cookie == is_program) begin_to_end();
    if (is_ending || k < table || k >= table + MOST_KNOWN) return 0;
    if (kind == is_bridge) bridge_is_closed(k);
    if (kind == is_plain) --k->plain;
    return 0;
}
