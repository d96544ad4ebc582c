// SPDX-License-Identifier: Apache-2.0
//
// Standing in for what starts processes, or becomes another program: what is told of them, and what they are started with where they cannot
// load us.
#include "processes.hpp"

#include "audit/raised_rights.hpp"
#include "events.hpp"
#include "lock.hpp"
#include "raw_files.hpp"
#include "readable.hpp"
#include "waits.hpp"

#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <unistd.h>
#include <wordexp.h>

namespace kiln::companion {

namespace {

using kiln::audit::raises_rights;
// Whether it names the recorder, and not what another tool put there, or nothing.
bool names_recorder(char const* value) {
    constexpr char file[] = "/libkiln-recorder.so";
    auto const length = value == nullptr ? 0 : std::strlen(value);
    return length >= sizeof file - 1 && std::strcmp(value + length - (sizeof file - 1), file) == 0;
}
// Whether what it becomes can be recorded: it has what we put around it, and no more rights than who starts it.
uint32_t how_seen(char const* path, char* const* environment) {
    bool has_directory = false, has_recorder = false;
    for (auto const* at = environment; at != nullptr && *at != nullptr; ++at) {
        has_directory = has_directory || (std::strncmp(*at, "KILN_AUDIT_DIR=", 15) == 0 && is_directory(*at + 15));
        has_recorder =
            has_recorder || (std::strncmp(*at, "CUDA_INJECTION64_PATH=", 22) == 0 && names_recorder(*at + 22));
    }
    return has_directory && has_recorder && !raises_rights(path) ? asked_for : out_of_sight;
}
void note_becoming(char const* path, uint32_t how) {
    note_process(static_cast<uint32_t>(::getpid()), static_cast<uint32_t>(::getppid()), how, path, 0);
}
bool may_be_run(char const* path) { return path != nullptr && ::access(path, X_OK) == 0; }

// What is to be told of an exec. Of those that are given an environment.
[[gnu::noinline]] uint32_t exec_seen(char const* path, char* const* environment) {
    return may_call() && may_be_run(path) && can_be_read(environment) ? how_seen(path, environment) : nothing;
}
// Found in PATH, and not by us.
[[gnu::noinline]] uint32_t exec_seen_somewhere(char const* file, char* const* environment) {
    if (!may_call() || !can_be_read(file)) return nothing;
    if (std::strchr(file, '/') != nullptr) return exec_seen(file, environment);
    return can_be_read(environment) && how_seen(nullptr, environment) == out_of_sight ? out_of_sight : nothing;
}
// These take the environment as it is. Only where that has been emptied is there anything to say: else what it becomes tells by itself.
bool is_whole(libc_calls const& libc) {
    auto const* const to = libc.getenv("KILN_AUDIT_DIR");
    return to != nullptr && is_directory(to) && names_recorder(libc.getenv("CUDA_INJECTION64_PATH"));
}
[[gnu::noinline]] uint32_t exec_seen_as_is(libc_calls const& libc, char const* file) {
    if (!may_call() || !can_be_read(file)) return nothing;
    bool const is_path = std::strchr(file, '/') != nullptr;
    if ((is_path && !may_be_run(file)) || (is_whole(libc) && !(is_path && raises_rights(file)))) return nothing;
    return out_of_sight;
}
// One whose number is not known.
void note_unnumbered(char const* name) { note_process(0, static_cast<uint32_t>(::getpid()), out_of_sight, name, 0); }

// An exec that comes back has failed: what was told of it is taken back.
template <class Exec>
int tell_and(uint32_t how, char const* path, Exec const& exec) {
    if (how != nothing) note_becoming(path, how);
    int const status = exec();
    if (how != nothing) note_becoming(path, unmade);
    return status;
}

// ---- processes that cannot load us

// The loader would say so on the program's standard error, or end it where there is no room for another libc. Nor is there any for a GPU.
constexpr ::rlim_t least_room = ::rlim_t{64} << 20;
char companion[PATH_MAX];
bool can_be_loaded() {
    if (!may_call()) return false;  // what we ask for would be the end of what it becomes
    ::rlimit room{};
    if (::getrlimit(RLIMIT_AS, &room) == 0 && room.rlim_cur < least_room) return false;
    // Below the root of now. As who runs really: where it has other rights for now the loader takes nothing from the environment.
    if (::access(companion, R_OK) != 0) return false;
    if (!may_be_walled_in()) return true;
    int const fd = kiln::audit::open_raw(companion, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) kiln::audit::close_raw(fd);
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
    if (may_call() && !can_be_read(environment)) return start(environment);
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
[[gnu::noinline]] int exec_with(uint32_t how, execve_like real, char const* path, char* const* arguments,
                                char* const* environment) {
    return tell_and(how, path, [&] {
        return in_fitting(environment, [&](char* const* fitting) { return real(path, arguments, fitting); });
    });
}
// The variable is in the program's own memory, and means nothing to anybody but the loader of what comes.
[[gnu::noinline]] void fit_environment(libc_calls const& libc) {
    if (auto* const list = libc.getenv("LD_AUDIT"); list != nullptr && !can_be_loaded()) take_us_out(list);
}
[[gnu::noinline]] int exec_as_is(libc_calls const& libc, execv_like real, char const* file, char* const* arguments) {
    return tell_and(exec_seen_as_is(libc, file), file, [&] {
        fit_environment(libc);
        return real(file, arguments);
    });
}
// Before libc itself starts a shell, with the environment as it is.
[[gnu::noinline]] void prepare_shell(libc_calls const& libc) {
    if (may_call() && !is_whole(libc)) note_unnumbered("sh");
    fit_environment(libc);
}

KILN_SEEN(execve, execve_like)
template <std::size_t Slot>
int seen_execve(char const* path, char* const* arguments, char* const* environment) {
    return exec_with(exec_seen(path, environment), execve_real<Slot>(), path, arguments, environment);
}
KILN_SEEN(execvpe, execve_like)
template <std::size_t Slot>
int seen_execvpe(char const* file, char* const* arguments, char* const* environment) {
    return exec_with(exec_seen_somewhere(file, environment), execvpe_real<Slot>(), file, arguments, environment);
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
    descriptor_path const path{fd};
    return tell_and(exec_seen(path.text, environment), path.text, [&] {
        return in_fitting(environment, [&](char* const* fitting) { return real(fd, arguments, fitting); });
    });
}
KILN_SEEN(fexecve, fexecve_like)
template <std::size_t Slot>
int seen_fexecve(int fd, char* const* arguments, char* const* environment) {
    return exec_descriptor(fexecve_real<Slot>(), fd, arguments, environment);
}
using execveat_like = int (*)(int, char const*, char* const*, char* const*, int);
[[gnu::noinline]] int exec_below(execveat_like real, int folder, char const* path, char* const* arguments,
                                 char* const* environment, int flags) {
    descriptor_path const itself{folder};
    auto const* told = path;
    uint32_t how = nothing;
    if (!may_call() || !can_be_read(path)) how = nothing;
    else if (*path == '\0') how = exec_seen(told = itself.text, environment);
    else if (::faccessat(folder, path, X_OK, 0) == 0 && can_be_read(environment))
        how = how_seen(folder == AT_FDCWD || *path == '/' ? path : nullptr, environment);
    return tell_and(how, told, [&] {
        return in_fitting(environment,
                          [&](char* const* fitting) { return real(folder, path, arguments, fitting, flags); });
    });
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
    return exec_with(exec_seen(path, environment), libc.execve, path, list, environment);
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
    if (command != nullptr) prepare_shell(system_libc<Slot>());
    return system_real<Slot>()(command);
}
KILN_SEEN(popen, ::FILE* (*)(char const*, char const*))
template <std::size_t Slot>
::FILE* seen_popen(char const* command, char const* how) {
    prepare_shell(popen_libc<Slot>());
    return popen_real<Slot>()(command, how);
}
[[gnu::noinline]] bool has_command(char const* words, int flags) {
    return words != nullptr && (flags & WRDE_NOCMD) == 0 &&
           (std::strchr(words, '`') != nullptr || std::strstr(words, "$(") != nullptr);
}
KILN_SEEN(wordexp, int (*)(char const*, ::wordexp_t*, int))
template <std::size_t Slot>
int seen_wordexp(char const* words, ::wordexp_t* to, int flags) {
    if (has_command(words, flags)) prepare_shell(wordexp_libc<Slot>());
    return wordexp_real<Slot>()(words, to, flags);
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
    if (may_call())
        note_process(static_cast<uint32_t>(child), static_cast<uint32_t>(::getpid()), how_seen(path, environment),
                     path == nullptr ? "?" : path, 0);
    return 0;
}
// Those of glibc 2.39 that give a descriptor of the process.
[[gnu::noinline]] int spawn_unnumbered(any_spawn_call real, int* to, char const* path,
                                       ::posix_spawn_file_actions_t const* actions, ::posix_spawnattr_t const* how,
                                       char* const* arguments, char* const* environment) {
    int const status =
        in_fitting(environment, [&](char* const* fitting) { return real(to, path, actions, how, arguments, fitting); });
    if (status == 0 && may_call() && how_seen(path, environment) == out_of_sight)
        note_unnumbered(path == nullptr ? "?" : path);
    return status;
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
KILN_SEEN(pidfd_spawn, any_spawn_call)
template <std::size_t Slot>
int seen_pidfd_spawn(int* to, char const* path, ::posix_spawn_file_actions_t const* actions,
                     ::posix_spawnattr_t const* how, char* const* arguments, char* const* environment) {
    return spawn_unnumbered(pidfd_spawn_real<Slot>(), to, path, actions, how, arguments, environment);
}
KILN_SEEN(pidfd_spawnp, any_spawn_call)
template <std::size_t Slot>
int seen_pidfd_spawnp(int* to, char const* path, ::posix_spawn_file_actions_t const* actions,
                      ::posix_spawnattr_t const* how, char* const* arguments, char* const* environment) {
    return spawn_unnumbered(pidfd_spawnp_real<Slot>(), to, path, actions, how, arguments, environment);
}

}  // namespace

void* observed_of_libc(char const* name, void* original, libc_calls const& libc) {
    if (original == nullptr || name == nullptr) return original;
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
    KILN_OBSERVE("wordexp", wordexp);
    KILN_OBSERVE("pidfd_spawn", pidfd_spawn);
    KILN_OBSERVE("pidfd_spawnp", pidfd_spawnp);
    auto* const waits = observed_wait(name, original, libc);
    return waits != original ? waits : observed_lock(name, original, libc);
}

namespace {

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
}  // namespace

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

}  // namespace kiln::companion
