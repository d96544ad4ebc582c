// SPDX-License-Identifier: Apache-2.0
//
// libkiln-companion.so, loaded by the loader (LD_AUDIT) beside the hook of `kiln run`, if that is there: what CUPTI cannot see.
// The compilers a program calls (NVRTC, nvJitLink, NVVM), cuInit, and the processes it starts, with their times. It observes only:
// the loader asks which address a name is bound to, and gets a function that calls the original and notes when.
//
// libc alone, and a libc of its own: what is loaded this way lives in another namespace, so nothing here can change the program's
// errno, locks or exit handlers. Each event is one open, one append, one close: a killed process loses nothing, and a program that closes
// every descriptor cannot lose or redirect it.
#include "audit/recording_format.hpp"
#include "file_limit.hpp"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace {

namespace format = kiln::audit::format;
using std::uint16_t, std::uint32_t, std::uint64_t;

// ---- one event, one append

uint64_t now_ns() {
    ::timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}
uint32_t thread_id() { return static_cast<uint32_t>(::syscall(SYS_gettid)); }

char directory[PATH_MAX];
std::size_t directory_length = 0;
int lock_at_first = 0;
std::atomic<uint32_t> strings_used{0};
std::atomic<uint64_t> chunks_written{0};

constexpr std::size_t most_text = 1024;

char* put(char* to, char const* text) { return ::stpcpy(to, text); }
char* put(char* to, uint32_t number) {
    char digits[10];
    int n = 0;
    do digits[n++] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    while (n > 0) *to++ = digits[--n];
    *to = '\0';
    return to;
}

// Programs call us on stacks of a few KiB, a signal's or a clone's: names lie in as many bytes as they have, texts stay where they are, and
// nothing here prints.
constexpr std::size_t most_file_name = 24, most_suffix = 24;

constexpr int appending = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW;

// The file gets its name when it has its head, so that who comes second finds it whole.
[[gnu::noinline]] void make_events(char const* path) {
    unsigned char head[format::file_header_bytes] = {};
    std::memcpy(head, format::file_magic.data(), format::file_magic.size());
    for (unsigned i = 0; i < 4; ++i)
        head[format::file_magic.size() + i] = static_cast<unsigned char>(format::version >> (8 * i));
    static std::atomic<uint32_t> made{0};
    auto* const nameless = static_cast<char*>(__builtin_alloca(directory_length + most_file_name + most_suffix));
    put(put(put(put(put(nameless, path), "."), thread_id()), "."), made++);
    int const fresh = ::open(nameless, appending | O_CREAT | O_EXCL, 0600);
    if (fresh < 0) return;
    bool const is_whole = kiln::audit::may_grow(fresh, sizeof head) &&
                          ::write(fresh, head, sizeof head) == static_cast<ssize_t>(sizeof head);
    ::close(fresh);
    // Unless somebody was first. Not every file system has links.
    if (is_whole && ::link(nameless, path) != 0 && errno != EEXIST) ::rename(nameless, path);
    ::unlink(nameless);
}

// Without a lock: who forks, or takes a signal, while another event is written would wait for it forever.
[[gnu::noinline]] void append(::iovec const* parts, int count) {
    if (kiln::audit::has_locked_itself_in(lock_at_first)) return;
    auto* const path = static_cast<char*>(__builtin_alloca(directory_length + most_file_name));
    put(put(put(put(path, directory), "/c"), static_cast<uint32_t>(::getpid())), ".kilnrec");
    int fd = ::open(path, appending);
    if (fd < 0 && errno == ENOENT) {
        make_events(path);
        fd = ::open(path, appending);
    }
    if (fd < 0) return;
    std::size_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
    if (kiln::audit::may_grow(fd, bytes)) (void)!::writev(fd, parts, count);
    ::close(fd);
}

// The head of a chunk whose contents are two pieces.
void put_head(unsigned char* to, format::chunk type, uint64_t time, ::iovec const& one, ::iovec const& other) {
    format::chunk_header head;
    head.type = static_cast<uint16_t>(type);
    head.length = static_cast<uint32_t>(one.iov_len + other.iov_len);
    head.sequence = chunks_written++;
    head.first = head.last = time;
    format::write_record(head, to);
    head.crc = format::crc32c(to, format::chunk_header_bytes);
    head.crc = format::crc32c(one.iov_base, one.iov_len, head.crc);
    head.crc = format::crc32c(other.iov_base, other.iov_len, head.crc);
    format::write_record(head, to);
}

template <class Record>
[[gnu::noinline]] void note(Record r, char const* text, uint64_t time) {
    if (directory[0] == '\0') return;
    auto const length = static_cast<uint32_t>(::strnlen(text, most_text));
    r.name = 0x4000'0000u + strings_used++;
    unsigned char name_head[format::chunk_header_bytes], name[8];
    unsigned char record_head[format::chunk_header_bytes], record[format::bytes_of<Record>()];
    for (unsigned i = 0; i < 4; ++i) name[i] = static_cast<unsigned char>(r.name >> (8 * i));
    for (unsigned i = 0; i < 4; ++i) name[4 + i] = static_cast<unsigned char>(length >> (8 * i));
    format::write_record(r, record);
    ::iovec const parts[] = {{name_head, sizeof name_head},
                             {name, sizeof name},
                             {const_cast<char*>(text), length},
                             {record_head, sizeof record_head},
                             {record, sizeof record}};
    put_head(name_head, format::chunk::strings, 0, parts[1], parts[2]);
    put_head(record_head, Record::kind, time, parts[4], {nullptr, 0});
    append(parts, 5);
}

[[gnu::noinline]] void note_process(uint32_t pid, uint32_t parent, uint32_t what, char const* name, uint32_t status) {
    format::child_record r;
    r.pid = pid;
    r.parent = parent;
    r.event = what;
    r.status = status;
    r.time = now_ns();
    note(r, name, r.time);
}

// ---- compilers

thread_local uint16_t depth = 0;

// What a program was made of, between nvrtcCreateProgram and its compile.
struct program_text {
    std::atomic<void*> program{nullptr};
    uint64_t bytes = 0, hash = 0;
    char name[96] = {};
};
program_text programs[64];
std::atomic<uint32_t> programs_seen{0};

uint64_t hash_of(char const* text, std::size_t bytes) {
    uint64_t h = 14695981039346656037u;
    for (std::size_t i = 0; i < bytes; ++i) h = (h ^ static_cast<unsigned char>(text[i])) * 1099511628211u;
    return h;
}

template <class Call>
int timed(format::compiler what, char const* text, program_text const* of, Call const& call) {
    format::compile_record r;
    r.what = static_cast<unsigned char>(what);
    r.depth = depth++;
    r.thread = thread_id();
    r.start = now_ns();
    int const status = call();
    r.end = now_ns();
    --depth;
    r.status = static_cast<uint32_t>(status);
    if (of != nullptr) {
        r.bytes = of->bytes;
        r.hash = of->hash;
    }
    note(r, text, r.start);
    return status;
}

// What we ask of the libc that a function is of: with dlmopen() there are several, each with an environment of its own.
struct libc_calls {
    uintptr_t base = 0;
    char* (*getenv)(char const*) = nullptr;
    int (*execv)(char const*, char* const*) = nullptr;
    int (*execvp)(char const*, char* const*) = nullptr;
    int (*execve)(char const*, char* const*, char* const*) = nullptr;
};

// One function for each original: two copies of a library stay two, and so do two versions of a function. As many as there can be
// namespaces.
constexpr std::size_t slots = 16;
template <class Tag, class Signature>
struct originals {
    static inline std::atomic<Signature> all[slots] = {};
    static inline std::atomic<libc_calls const*> libc[slots] = {};
};

struct create_tag;
using create_call = int (*)(void**, char const*, char const*, int, char const* const*, char const* const*);
[[gnu::noinline]] void remember(void* program, char const* text, char const* name) {
    auto& p = programs[programs_seen++ % 64];
    p.bytes = text == nullptr ? 0 : std::strlen(text);
    p.hash = hash_of(text == nullptr ? "" : text, p.bytes);
    std::snprintf(p.name, sizeof p.name, "%s", name == nullptr ? "" : name);
    p.program = program;
}
template <std::size_t Slot>
int create(void** program, char const* text, char const* name, int headers, char const* const* sources,
           char const* const* names) {
    int const status =
        originals<create_tag, create_call>::all[Slot].load()(program, text, name, headers, sources, names);
    if (status == 0 && program != nullptr) remember(*program, text, name);
    return status;
}

struct compile_tag;
using compile_call = int (*)(void*, int, char const* const*);
[[gnu::noinline]] int compile_timed(compile_call real, void* program, int count, char const* const* options) {
    program_text const* of = nullptr;
    for (auto const& p : programs)
        if (p.program == program) of = &p;
    char text[most_text];
    int at = std::snprintf(text, sizeof text, "%s\t", of == nullptr ? "" : of->name);
    for (int i = 0; i < count && options != nullptr && at < static_cast<int>(sizeof text) - 130; ++i)
        if (options[i] != nullptr) at += std::snprintf(text + at, 128, "%.120s ", options[i]);
    return timed(format::compiler::nvrtc, text, of, [&] { return real(program, count, options); });
}
template <std::size_t Slot>
int compile(void* program, int count, char const* const* options) {
    return compile_timed(originals<compile_tag, compile_call>::all[Slot], program, count, options);
}

struct link_tag;
using link_call = int (*)(void*);
[[gnu::noinline]] int link_timed(link_call real, void* handle) {
    return timed(format::compiler::nvjitlink, "nvJitLink", nullptr, [&] { return real(handle); });
}
template <std::size_t Slot>
int link(void* handle) {
    return link_timed(originals<link_tag, link_call>::all[Slot], handle);
}

struct nvvm_tag;
[[gnu::noinline]] int nvvm_timed(compile_call real, void* program, int count, char const* const* options) {
    return timed(format::compiler::nvvm, "NVVM", nullptr, [&] { return real(program, count, options); });
}
template <std::size_t Slot>
int nvvm(void* program, int count, char const* const* options) {
    return nvvm_timed(originals<nvvm_tag, compile_call>::all[Slot], program, count, options);
}

struct init_tag;
using init_call = int (*)(unsigned);
[[gnu::noinline]] int init_timed(init_call real, unsigned flags) {
    return timed(format::compiler::driver_init, "cuInit", nullptr, [&] { return real(flags); });
}
template <std::size_t Slot>
int init(unsigned flags) {
    return init_timed(originals<init_tag, init_call>::all[Slot], flags);
}

// The function that stands for `original`; the original itself where all are taken.
template <class Tag, class Signature, std::size_t... Slot>
void* stand_in(void* original, libc_calls const* libc, Signature const (&ours)[sizeof...(Slot)],
               std::index_sequence<Slot...>) {
    auto& all = originals<Tag, Signature>::all;
    auto const wanted = reinterpret_cast<Signature>(original);
    for (auto const one : ours)
        if (reinterpret_cast<void*>(one) == original) return original;
    for (std::size_t i = 0; i < slots; ++i) {
        Signature none = nullptr;
        if (all[i].load() != wanted && !all[i].compare_exchange_strong(none, wanted) && none != wanted) continue;
        originals<Tag, Signature>::libc[i] = libc;
        return reinterpret_cast<void*>(ours[i]);
    }
    return original;
}
#define KILN_STAND_IN(tag, signature, function)                                                         \
    []<std::size_t... Slot>(void* original, libc_calls const* libc, std::index_sequence<Slot...> all) { \
        static signature const ours[] = {function<Slot>...};                                            \
        return stand_in<tag, signature>(original, libc, ours, all);                                     \
    }

void* observed(char const* name, void* original);

// The runtime asks the driver itself for its functions.
struct address_tag;
struct address_v2_tag;
using address_call = int (*)(char const*, void**, int, uint64_t);
using address_v2_call = int (*)(char const*, void**, int, uint64_t, int*);
template <std::size_t Slot>
int address(char const* name, void** to, int version, uint64_t flags) {
    int const status = originals<address_tag, address_call>::all[Slot].load()(name, to, version, flags);
    if (status == 0 && name != nullptr && to != nullptr && *to != nullptr) *to = observed(name, *to);
    return status;
}
template <std::size_t Slot>
int address_v2(char const* name, void** to, int version, uint64_t flags, int* how) {
    int const status = originals<address_v2_tag, address_v2_call>::all[Slot].load()(name, to, version, flags, how);
    if (status == 0 && name != nullptr && to != nullptr && *to != nullptr) *to = observed(name, *to);
    return status;
}

// ---- processes

// Whether what it becomes can be recorded: it has what we put around it, and no more rights than who starts it.
constexpr uint32_t asked_for = 3, out_of_sight = 5;
bool raises_rights(char const* path) {
    struct ::stat about {};
    return path != nullptr && ::stat(path, &about) == 0 &&
           (((about.st_mode & S_ISUID) != 0 && about.st_uid != ::geteuid()) ||
            ((about.st_mode & S_ISGID) != 0 && about.st_gid != ::getegid()));
}
uint32_t how_seen(char const* path, char* const* environment) {
    bool has_directory = false, has_recorder = false;
    for (auto const* at = environment; at != nullptr && *at != nullptr; ++at) {
        has_directory = has_directory || std::strncmp(*at, "KILN_AUDIT_DIR=", 15) == 0;
        has_recorder = has_recorder || std::strncmp(*at, "CUDA_INJECTION64_PATH=", 22) == 0;
    }
    return has_directory && has_recorder && !raises_rights(path) ? asked_for : out_of_sight;
}
void note_becoming(char const* path, uint32_t how) {
    note_process(static_cast<uint32_t>(::getpid()), static_cast<uint32_t>(::getppid()), how, path, 0);
}
bool may_be_run(char const* path) { return path != nullptr && ::access(path, X_OK) == 0; }

// Those that are given an environment.
[[gnu::noinline]] void note_exec(char const* path, char* const* environment) {
    if (may_be_run(path)) note_becoming(path, how_seen(path, environment));
}
// Found in PATH, and not by us.
[[gnu::noinline]] void note_exec_somewhere(char const* file, char* const* environment) {
    if (file == nullptr) return;
    if (std::strchr(file, '/') != nullptr) return note_exec(file, environment);
    if (how_seen(nullptr, environment) == out_of_sight) note_becoming(file, out_of_sight);
}
// These take the environment as it is. Only where that has been emptied is there anything to say: else what it becomes tells by itself.
bool is_whole(libc_calls const& libc) {
    return libc.getenv("KILN_AUDIT_DIR") != nullptr && libc.getenv("CUDA_INJECTION64_PATH") != nullptr;
}
[[gnu::noinline]] void note_exec_as_is(libc_calls const& libc, char const* file) {
    if (file == nullptr) return;
    bool const is_path = std::strchr(file, '/') != nullptr;
    if ((is_path && !may_be_run(file)) || (is_whole(libc) && !(is_path && raises_rights(file)))) return;
    note_becoming(file, out_of_sight);
}
// A shell that libc starts itself: its number is not known.
[[gnu::noinline]] void note_shell(libc_calls const& libc, char const* command) {
    if (command != nullptr && !is_whole(libc))
        note_process(0, static_cast<uint32_t>(::getpid()), out_of_sight, "sh", 0);
}

// ---- processes that cannot load us

// The loader would say so on the program's standard error, or end it where there is no room for another libc. Nor is there any for a GPU.
constexpr ::rlim_t least_room = ::rlim_t{64} << 20;
char companion[PATH_MAX];
bool can_be_loaded() {
    if (kiln::audit::has_locked_itself_in(lock_at_first)) return true;  // not to be found out
    ::rlimit room{};
    if (::getrlimit(RLIMIT_AS, &room) == 0 && room.rlim_cur < least_room) return false;
    int const fd = ::open(companion, O_RDONLY | O_CLOEXEC);  // as who runs now, below the root of now
    if (fd >= 0) ::close(fd);
    return fd >= 0;
}

// Where we stand among the names in LD_AUDIT; null: nowhere.
char* our_name_in(char* list) {
    auto const length = std::strlen(companion);
    for (auto* at = list; length != 0 && (at = std::strstr(at, companion)) != nullptr; ++at)
        if ((at == list || at[-1] == ':') && (at[length] == '\0' || at[length] == ':')) return at;
    return nullptr;
}
void take_us_out(char* list) {
    auto* const at = our_name_in(list);
    if (at == nullptr) return;
    auto const* const rest = at + std::strlen(companion);
    if (*rest == ':') std::memmove(at, rest + 1, std::strlen(rest + 1) + 1);
    else *(at == list ? at : at - 1) = '\0';
}
constexpr char audit_variable[] = "LD_AUDIT=";
char* audit_list(char* entry) {
    return std::strncmp(entry, audit_variable, sizeof audit_variable - 1) == 0 ? entry + sizeof audit_variable - 1
                                                                               : nullptr;
}

// With an environment in which we are only where we can be loaded.
template <class Start>
int in_fitting(char* const* environment, Start const& start) {
    std::size_t count = 0, ours = 0, longest = 0;
    for (; environment != nullptr && environment[count] != nullptr; ++count)
        if (auto* const list = audit_list(environment[count]); list != nullptr && our_name_in(list) != nullptr) {
            ours = count + 1;
            longest = std::strlen(environment[count]);
        }
    if (ours == 0 || can_be_loaded()) return start(environment);
    auto** const fitting = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*)));
    auto* const entry = static_cast<char*>(__builtin_alloca(longest + 1));
    std::memcpy(fitting, environment, (count + 1) * sizeof(char*));
    take_us_out(audit_list(fitting[ours - 1] = std::strcpy(entry, environment[ours - 1])));
    return start(fitting);
}

using execve_like = int (*)(char const*, char* const*, char* const*);
using execv_like = int (*)(char const*, char* const*);
[[gnu::noinline]] int exec_with(execve_like real, char const* path, char* const* arguments, char* const* environment) {
    return in_fitting(environment, [&](char* const* fitting) { return real(path, arguments, fitting); });
}
// The variable is in the program's own memory, and means nothing to anybody but the loader of what comes.
[[gnu::noinline]] int exec_as_is(libc_calls const& libc, execv_like real, char const* file, char* const* arguments) {
    note_exec_as_is(libc, file);
    if (auto* const list = libc.getenv("LD_AUDIT"); list != nullptr && !can_be_loaded()) take_us_out(list);
    return real(file, arguments);
}

// Functions of libc, by the name of what stands for them: kept apart by their originals.
#define KILN_SEEN(name, ...)                                           \
    struct name##_tag;                                                 \
    using name##_call = __VA_ARGS__;                                   \
    template <std::size_t Slot>                                        \
    auto const& name##_real() {                                        \
        return originals<name##_tag, name##_call>::all[Slot];          \
    }                                                                  \
    template <std::size_t Slot>                                        \
    libc_calls const& name##_libc() {                                  \
        return *originals<name##_tag, name##_call>::libc[Slot].load(); \
    }

KILN_SEEN(execve, execve_like)
template <std::size_t Slot>
int seen_execve(char const* path, char* const* arguments, char* const* environment) {
    note_exec(path, environment);
    return exec_with(execve_real<Slot>(), path, arguments, environment);
}
KILN_SEEN(execvpe, execve_like)
template <std::size_t Slot>
int seen_execvpe(char const* file, char* const* arguments, char* const* environment) {
    note_exec_somewhere(file, environment);
    return exec_with(execvpe_real<Slot>(), file, arguments, environment);
}
KILN_SEEN(execv, execv_like)
template <std::size_t Slot>
int seen_execv(char const* path, char* const* arguments) {
    return exec_as_is(execv_libc<Slot>(), execv_real<Slot>(), path, arguments);
}
KILN_SEEN(execvp, execv_like)
template <std::size_t Slot>
int seen_execvp(char const* file, char* const* arguments) {
    return exec_as_is(execvp_libc<Slot>(), execvp_real<Slot>(), file, arguments);
}

// A descriptor as a path, for who asks about it.
struct descriptor_path {
    char text[32];
    explicit descriptor_path(int fd) { put(put(text, "/proc/self/fd/"), static_cast<uint32_t>(fd)); }
};
using fexecve_like = int (*)(int, char* const*, char* const*);
[[gnu::noinline]] int exec_descriptor(fexecve_like real, int fd, char* const* arguments, char* const* environment) {
    note_exec(descriptor_path{fd}.text, environment);
    return in_fitting(environment, [&](char* const* fitting) { return real(fd, arguments, fitting); });
}
KILN_SEEN(fexecve, fexecve_like)
template <std::size_t Slot>
int seen_fexecve(int fd, char* const* arguments, char* const* environment) {
    return exec_descriptor(fexecve_real<Slot>(), fd, arguments, environment);
}
using execveat_like = int (*)(int, char const*, char* const*, char* const*, int);
[[gnu::noinline]] int exec_below(execveat_like real, int folder, char const* path, char* const* arguments,
                                 char* const* environment, int flags) {
    if (path != nullptr && *path == '\0') note_exec(descriptor_path{folder}.text, environment);
    else if (path != nullptr && ::faccessat(folder, path, X_OK, 0) == 0)
        note_becoming(path, how_seen(folder == AT_FDCWD || *path == '/' ? path : nullptr, environment));
    return in_fitting(environment, [&](char* const* fitting) { return real(folder, path, arguments, fitting, flags); });
}
KILN_SEEN(execveat, execveat_like)
template <std::size_t Slot>
int seen_execveat(int folder, char const* path, char* const* arguments, char* const* environment, int flags) {
    return exec_below(execveat_real<Slot>(), folder, path, arguments, environment, flags);
}

// Arguments one by one become what the calls with a list take, as libc does it. After them comes the environment where `exec` is null.
[[gnu::noinline]] int exec_words(libc_calls const& libc, execv_like exec, char const* path, char const* first,
                                 std::va_list words) {
    std::va_list again;
    va_copy(again, words);
    std::size_t count = first == nullptr ? 0 : 1;
    while (count != 0 && va_arg(again, char*) != nullptr) ++count;
    va_end(again);
    auto** const list = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*)));
    list[0] = const_cast<char*>(first);
    for (std::size_t i = 1; i <= count; ++i) list[i] = va_arg(words, char*);
    if (exec != nullptr) return exec_as_is(libc, exec, path, list);
    auto* const environment = va_arg(words, char* const*);
    note_exec(path, environment);
    return exec_with(libc.execve, path, list, environment);
}
KILN_SEEN(execl, int (*)(char const*, char const*, ...))
template <std::size_t Slot>
int seen_execl(char const* path, char const* first, ...) {
    std::va_list words;
    va_start(words, first);
    int const status = exec_words(execl_libc<Slot>(), execl_libc<Slot>().execv, path, first, words);
    va_end(words);
    return status;
}
KILN_SEEN(execlp, int (*)(char const*, char const*, ...))
template <std::size_t Slot>
int seen_execlp(char const* file, char const* first, ...) {
    std::va_list words;
    va_start(words, first);
    int const status = exec_words(execlp_libc<Slot>(), execlp_libc<Slot>().execvp, file, first, words);
    va_end(words);
    return status;
}
KILN_SEEN(execle, int (*)(char const*, char const*, ...))
template <std::size_t Slot>
int seen_execle(char const* path, char const* first, ...) {
    std::va_list words;
    va_start(words, first);
    int const status = exec_words(execle_libc<Slot>(), nullptr, path, first, words);
    va_end(words);
    return status;
}

KILN_SEEN(system, int (*)(char const*))
template <std::size_t Slot>
int seen_system(char const* command) {
    note_shell(system_libc<Slot>(), command);
    return system_real<Slot>().load()(command);
}
KILN_SEEN(popen, ::FILE* (*)(char const*, char const*))
template <std::size_t Slot>
::FILE* seen_popen(char const* command, char const* how) {
    note_shell(popen_libc<Slot>(), command);
    return popen_real<Slot>().load()(command, how);
}

using any_spawn_call = int (*)(::pid_t*, char const*, ::posix_spawn_file_actions_t const*, ::posix_spawnattr_t const*,
                               char* const*, char* const*);
[[gnu::noinline]] int spawn_and_tell(any_spawn_call real, ::pid_t* to, char const* path,
                                     ::posix_spawn_file_actions_t const* actions, ::posix_spawnattr_t const* how,
                                     char* const* arguments, char* const* environment) {
    ::pid_t child = 0;
    int const status = in_fitting(
        environment, [&](char* const* fitting) { return real(&child, path, actions, how, arguments, fitting); });
    if (status != 0) return status;
    if (to != nullptr) *to = child;
    note_process(static_cast<uint32_t>(child), static_cast<uint32_t>(::getpid()), how_seen(path, environment),
                 path == nullptr ? "?" : path, 0);
    return 0;
}
KILN_SEEN(spawn, any_spawn_call)
template <std::size_t Slot>
int seen_spawn(::pid_t* to, char const* path, ::posix_spawn_file_actions_t const* actions,
               ::posix_spawnattr_t const* how, char* const* arguments, char* const* environment) {
    return spawn_and_tell(spawn_real<Slot>(), to, path, actions, how, arguments, environment);
}
KILN_SEEN(spawnp, any_spawn_call)
template <std::size_t Slot>
int seen_spawnp(::pid_t* to, char const* path, ::posix_spawn_file_actions_t const* actions,
                ::posix_spawnattr_t const* how, char* const* arguments, char* const* environment) {
    return spawn_and_tell(spawnp_real<Slot>(), to, path, actions, how, arguments, environment);
}

// The status is written by who collects a child, and by nobody where there was none to collect.
[[gnu::noinline]] void note_end(::pid_t child, int const* status) {
    if (child > 0)
        note_process(static_cast<uint32_t>(child), static_cast<uint32_t>(::getpid()), 4, "",
                     static_cast<uint32_t>(*status));
}
KILN_SEEN(waitpid, ::pid_t (*)(::pid_t, int*, int))
template <std::size_t Slot>
::pid_t seen_waitpid(::pid_t which, int* status, int options) {
    int mine = 0;
    auto* const to = status == nullptr ? &mine : status;
    auto const child = waitpid_real<Slot>().load()(which, to, options);
    note_end(child, to);
    return child;
}
KILN_SEEN(wait4, ::pid_t (*)(::pid_t, int*, int, ::rusage*))
template <std::size_t Slot>
::pid_t seen_wait4(::pid_t which, int* status, int options, ::rusage* used) {
    int mine = 0;
    auto* const to = status == nullptr ? &mine : status;
    auto const child = wait4_real<Slot>().load()(which, to, options, used);
    note_end(child, to);
    return child;
}

bool is(char const* name, char const* other) { return std::strcmp(name, other) == 0; }

void* observed(char const* name, void* original) {
    constexpr std::make_index_sequence<slots> all;
    if (original == nullptr || name == nullptr) return original;
    if (name[0] == 'n' && name[1] == 'v') {
        if (is(name, "nvrtcCreateProgram"))
            return KILN_STAND_IN(create_tag, create_call, create)(original, nullptr, all);
        if (is(name, "nvrtcCompileProgram"))
            return KILN_STAND_IN(compile_tag, compile_call, compile)(original, nullptr, all);
        if (is(name, "nvJitLinkComplete")) return KILN_STAND_IN(link_tag, link_call, link)(original, nullptr, all);
        if (is(name, "nvvmCompileProgram")) return KILN_STAND_IN(nvvm_tag, compile_call, nvvm)(original, nullptr, all);
        return original;
    }
    if (std::strncmp(name, "__nvJitLinkComplete", 19) == 0)
        return KILN_STAND_IN(link_tag, link_call, link)(original, nullptr, all);
    if (is(name, "cuInit")) return KILN_STAND_IN(init_tag, init_call, init)(original, nullptr, all);
    if (is(name, "cuGetProcAddress")) return KILN_STAND_IN(address_tag, address_call, address)(original, nullptr, all);
    if (is(name, "cuGetProcAddress_v2"))
        return KILN_STAND_IN(address_v2_tag, address_v2_call, address_v2)(original, nullptr, all);
    return original;
}

void* observed_of_libc(char const* name, void* original, libc_calls const& libc) {
    constexpr std::make_index_sequence<slots> all;
    if (original == nullptr || name == nullptr) return original;
#define KILN_OBSERVE(called, which) \
    if (is(name, called)) return KILN_STAND_IN(which##_tag, which##_call, seen_##which)(original, &libc, all)
    KILN_OBSERVE("execve", execve);
    KILN_OBSERVE("execvpe", execvpe);
    KILN_OBSERVE("execv", execv);
    KILN_OBSERVE("execvp", execvp);
    KILN_OBSERVE("fexecve", fexecve);
    KILN_OBSERVE("execveat", execveat);
    KILN_OBSERVE("execl", execl);
    KILN_OBSERVE("execlp", execlp);
    KILN_OBSERVE("execle", execle);
    KILN_OBSERVE("system", system);
    KILN_OBSERVE("popen", popen);
    KILN_OBSERVE("posix_spawn", spawn);
    KILN_OBSERVE("posix_spawnp", spawnp);
    KILN_OBSERVE("waitpid", waitpid);
    KILN_OBSERVE("wait4", wait4);
#undef KILN_OBSERVE
    return original;
}

// Found without the loader, whose lock another thread may hold where somebody forks. The names follow the symbols in every glibc.
void* function_of(link_map const* map, char const* name) {
    Elf64_Sym const* symbol = nullptr;
    char const* names = nullptr;
    for (auto const* d = map->l_ld; d != nullptr && d->d_tag != DT_NULL; ++d) {
        if (d->d_tag == DT_SYMTAB) symbol = reinterpret_cast<Elf64_Sym const*>(d->d_un.d_ptr);
        if (d->d_tag == DT_STRTAB) names = reinterpret_cast<char const*>(d->d_un.d_ptr);
    }
    if (symbol == nullptr || reinterpret_cast<uintptr_t>(symbol) < map->l_addr || names == nullptr) return nullptr;
    for (; reinterpret_cast<char const*>(symbol + 1) <= names; ++symbol)
        if (symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
            is(names + symbol->st_name, name))
            return reinterpret_cast<void*>(map->l_addr + symbol->st_value);
    return nullptr;
}

template <class Call>
bool find(link_map const* map, Call& to, char const* name) {
    to = reinterpret_cast<Call>(function_of(map, name));
    return to != nullptr;
}
// Null where there are too many, or this one is of another make: it is left alone. The loader calls with its lock held.
libc_calls const* calls_of(link_map const* map) {
    static libc_calls known[slots];
    for (auto& k : known) {
        if (k.base != 0 && k.base != map->l_addr) continue;
        libc_calls fresh{.base = map->l_addr};
        if (!find(map, fresh.getenv, "getenv") || !find(map, fresh.execv, "execv") ||
            !find(map, fresh.execvp, "execvp") || !find(map, fresh.execve, "execve"))
            return nullptr;
        k = fresh;
        return &k;
    }
    return nullptr;
}

// Our own name, as the loader was given it.
void remember_our_name() {
    constexpr char file[] = "/libkiln-companion.so";
    auto const* const list = std::getenv("LD_AUDIT");
    auto const* const at = list == nullptr ? nullptr : std::strstr(list, file);
    if (at == nullptr) return;
    auto const* from = at;
    while (from > list && from[-1] != ':') --from;
    auto const length = static_cast<std::size_t>(at - from) + sizeof file - 1;
    if (length >= sizeof companion) return;
    std::memcpy(companion, from, length);
    companion[length] = '\0';
}

// "/usr/bin/python3\tpython3 train.py": one Python is told from another by its arguments.
void put_program(char* to, std::size_t size) {
    auto const* const program = reinterpret_cast<char const*>(::getauxval(AT_EXECFN));
    auto at = static_cast<std::size_t>(std::snprintf(to, size / 2, "%s\t", program == nullptr ? "?" : program));
    at = at < size / 2 ? at : size / 2 - 1;
    int const fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    auto const read = fd < 0 ? 0 : ::read(fd, to + at, size - at - 1);
    if (fd >= 0) ::close(fd);
    auto const end = at + static_cast<std::size_t>(read > 0 ? read : 0);
    for (; at < end; ++at)
        if (to[at] == '\0') to[at] = ' ';
    to[end] = '\0';
}

constexpr uintptr_t compiler_cookie = 1;  // a libc has the address of its calls

}  // namespace

extern "C" {

__attribute__((visibility("default"))) unsigned la_version(unsigned version) {
    auto const* const where = std::getenv("KILN_AUDIT_DIR");
    if (where == nullptr || std::strlen(where) >= sizeof directory) return 0;  // not needed here: the loader forgets us
    std::strcpy(directory, where);
    directory_length = std::strlen(directory);
    lock_at_first = kiln::audit::lock_of_process();
    remember_our_name();
    char text[most_text];
    put_program(text, sizeof text);
    note_process(static_cast<uint32_t>(::getpid()), static_cast<uint32_t>(::getppid()), 1, text, 0);
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

// Who may be called from anywhere, and whose callers we care for: the few libraries with compilers, the driver, and libc.
__attribute__((visibility("default"))) unsigned la_objopen(link_map* map, Lmid_t, uintptr_t* cookie) {
    auto const* const path = map->l_name == nullptr ? "" : map->l_name;
    auto const* const slash = std::strrchr(path, '/');
    auto const* const name = slash == nullptr ? path : slash + 1;
    bool const compiles = std::strstr(name, "libnvrtc.so") != nullptr ||
                          std::strstr(name, "libnvJitLink.so") != nullptr ||
                          std::strstr(name, "libnvvm.so") != nullptr || std::strstr(name, "libcuda.so") != nullptr;
    auto const* const libc = std::strncmp(name, "libc.so.6", 9) == 0 ? calls_of(map) : nullptr;
    *cookie = libc != nullptr ? reinterpret_cast<uintptr_t>(libc) : compiles ? compiler_cookie : 0;
    return static_cast<unsigned>((*cookie != 0 ? LA_FLG_BINDTO : 0) | LA_FLG_BINDFROM);
}

__attribute__((visibility("default"))) uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned, uintptr_t*,
                                                              uintptr_t* defined_in, unsigned*, char const* name) {
    auto* const original = reinterpret_cast<void*>(symbol->st_value);
    auto* const ours = *defined_in > compiler_cookie
                           ? observed_of_libc(name, original, *reinterpret_cast<libc_calls const*>(*defined_in))
                           : observed(name, original);
    return reinterpret_cast<uintptr_t>(ours);
}
}
