// SPDX-License-Identifier: Apache-2.0
//
// libkiln-companion.so, loaded by the loader (LD_AUDIT) beside the hook of `kiln run`, if that is there: what CUPTI cannot see.
// The compilers a program calls (NVRTC, nvJitLink, NVVM), cuInit, and the processes it starts, with their times. It observes only:
// the loader asks which address a name is bound to, and gets a function that calls the original and notes when.
//
// libc alone, and a libc of its own: what is loaded this way lives in another namespace, so nothing here can change the program's
// errno, locks or exit handlers. That the process began is one open, one append, one close; each event after that is a link, which needs no
// descriptor: a killed process loses nothing, and a program that closes every descriptor cannot lose or redirect it.
#include "events.hpp"
#include "lock.hpp"
#include "processes.hpp"
#include "raw_files.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <utility>

using namespace kiln::companion;

namespace {

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
    if (!may_call()) return call();
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

struct create_tag;
using create_call = int (*)(void**, char const*, char const*, int, char const* const*, char const* const*);
[[gnu::noinline]] void remember(void* program, char const* text, char const* name) {
    auto& p = programs[programs_seen++ % std::size(programs)];
    p.program = nullptr;  // while it is written
    p.bytes = text == nullptr ? 0 : std::strlen(text);
    p.hash = hash_of(text == nullptr ? "" : text, p.bytes);
    std::snprintf(p.name, sizeof p.name, "%s", name == nullptr ? "" : name);
    p.program = program;
}
template <std::size_t Slot>
int create(void** program, char const* text, char const* name, int headers, char const* const* sources,
           char const* const* names) {
    int const status = original_of<create_tag, create_call>(Slot)(program, text, name, headers, sources, names);
    if (status == 0 && program != nullptr) remember(*program, text, name);
    return status;
}

// A handle comes again when its program is destroyed: the newest is meant.
program_text const* text_of(void* program) {
    uint32_t const seen = programs_seen;
    for (uint32_t n = 1; n <= std::size(programs); ++n)
        if (auto const& p = programs[(seen - n) % std::size(programs)]; p.program == program) return &p;
    return nullptr;
}

struct compile_tag;
using compile_call = int (*)(void*, int, char const* const*);
[[gnu::noinline]] int compile_timed(compile_call real, void* program, int count, char const* const* options) {
    auto const* const of = text_of(program);
    char text[most_text];
    int at = std::snprintf(text, sizeof text, "%s\t", of == nullptr ? "" : of->name);
    for (int i = 0; i < count && options != nullptr && at < static_cast<int>(sizeof text) - 130; ++i)
        if (options[i] != nullptr) at += std::snprintf(text + at, 128, "%.120s ", options[i]);
    return timed(format::compiler::nvrtc, text, of, [&] { return real(program, count, options); });
}
template <std::size_t Slot>
int compile(void* program, int count, char const* const* options) {
    return compile_timed(original_of<compile_tag, compile_call>(Slot), program, count, options);
}

struct link_tag;
using link_call = int (*)(void*);
[[gnu::noinline]] int link_timed(link_call real, void* handle) {
    return timed(format::compiler::nvjitlink, "nvJitLink", nullptr, [&] { return real(handle); });
}
template <std::size_t Slot>
int link(void* handle) {
    return link_timed(original_of<link_tag, link_call>(Slot), handle);
}

struct nvvm_tag;
[[gnu::noinline]] int nvvm_timed(compile_call real, void* program, int count, char const* const* options) {
    return timed(format::compiler::nvvm, "NVVM", nullptr, [&] { return real(program, count, options); });
}
template <std::size_t Slot>
int nvvm(void* program, int count, char const* const* options) {
    return nvvm_timed(original_of<nvvm_tag, compile_call>(Slot), program, count, options);
}

struct init_tag;
using init_call = int (*)(unsigned);
[[gnu::noinline]] int init_timed(init_call real, unsigned flags) {
    return timed(format::compiler::driver_init, "cuInit", nullptr, [&] { return real(flags); });
}
template <std::size_t Slot>
int init(unsigned flags) {
    return init_timed(original_of<init_tag, init_call>(Slot), flags);
}

void* observed(char const* name, void* original);

// The runtime asks the driver itself for its functions.
struct address_tag;
struct address_v2_tag;
using address_call = int (*)(char const*, void**, int, uint64_t);
using address_v2_call = int (*)(char const*, void**, int, uint64_t, int*);
template <std::size_t Slot>
int address(char const* name, void** to, int version, uint64_t flags) {
    int const status = original_of<address_tag, address_call>(Slot)(name, to, version, flags);
    if (status == 0 && name != nullptr && to != nullptr && *to != nullptr) *to = observed(name, *to);
    return status;
}
template <std::size_t Slot>
int address_v2(char const* name, void** to, int version, uint64_t flags, int* how) {
    int const status = original_of<address_v2_tag, address_v2_call>(Slot)(name, to, version, flags, how);
    if (status == 0 && name != nullptr && to != nullptr && *to != nullptr) *to = observed(name, *to);
    return status;
}

void* observed(char const* name, void* original) {
    if (original == nullptr || name == nullptr) return original;
    if (name[0] == 'n' && name[1] == 'v') {
        if (is(name, "nvrtcCreateProgram"))
            return KILN_STAND_IN(create_tag, create_call, create)(original, nullptr, every_slot);
        if (is(name, "nvrtcCompileProgram"))
            return KILN_STAND_IN(compile_tag, compile_call, compile)(original, nullptr, every_slot);
        if (is(name, "nvJitLinkComplete"))
            return KILN_STAND_IN(link_tag, link_call, link)(original, nullptr, every_slot);
        if (is(name, "nvvmCompileProgram"))
            return KILN_STAND_IN(nvvm_tag, compile_call, nvvm)(original, nullptr, every_slot);
        return original;
    }
    if (std::strncmp(name, "__nvJitLinkComplete", 19) == 0)
        return KILN_STAND_IN(link_tag, link_call, link)(original, nullptr, every_slot);
    if (is(name, "cuInit")) return KILN_STAND_IN(init_tag, init_call, init)(original, nullptr, every_slot);
    if (is(name, "cuGetProcAddress"))
        return KILN_STAND_IN(address_tag, address_call, address)(original, nullptr, every_slot);
    if (is(name, "cuGetProcAddress_v2"))
        return KILN_STAND_IN(address_v2_tag, address_v2_call, address_v2)(original, nullptr, every_slot);
    return original;
}

// "/usr/bin/python3\tpython3 train.py": one Python is told from another by its arguments.
void put_program(char* to, std::size_t size) {
    auto const* const program = reinterpret_cast<char const*>(::getauxval(AT_EXECFN));
    auto at = static_cast<std::size_t>(std::snprintf(to, size / 2, "%s\t", program == nullptr ? "?" : program));
    at = at < size / 2 ? at : size / 2 - 1;
    int const fd = kiln::audit::open_raw("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    auto const read = fd < 0 ? 0 : kiln::audit::read_raw(fd, to + at, size - at - 1);
    if (fd >= 0) kiln::audit::close_raw(fd);
    auto const end = at + static_cast<std::size_t>(read > 0 ? read : 0);
    for (; at < end; ++at)
        if (to[at] == '\0') to[at] = ' ';
    to[end] = '\0';
}

constexpr uintptr_t compiler_cookie = 1;  // a libc has the address of its calls

bool has_recording = false;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) unsigned la_version(unsigned version) {
    auto const* const where = std::getenv("KILN_AUDIT_DIR");
    // 0 would have the loader forget us, but that of glibc 2.36 ends the program over it: we stay, and look at nothing.
    has_recording = where != nullptr && set_directory(where);
    if (!has_recording) return version < LAV_CURRENT ? version : LAV_CURRENT;
    remember_lock();
    remember_our_name();
    char text[most_text];
    put_program(text, sizeof text);
    note_process(static_cast<uint32_t>(::getpid()), static_cast<uint32_t>(::getppid()), began, text, identity());
    program_begins();
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

// Who may be called from anywhere, and whose callers we care for: the few libraries with compilers, the driver, and libc.
__attribute__((visibility("default"))) unsigned la_objopen(link_map* map, Lmid_t, uintptr_t* cookie) {
    *cookie = 0;
    if (!has_recording) return 0;
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
