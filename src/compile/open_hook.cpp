// SPDX-License-Identifier: Apache-2.0
#include "compile/open_hook.hpp"

#include "base/file_systems.hpp"
#include "base/fork_guard.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <set>
#include <shared_mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::compile {

namespace {

constexpr std::string_view kernel_places[] = {"/proc/", "/sys/", "/dev/"};

constinit std::atomic<header_answers*> current{nullptr};

// Held for the length of one compile: too long for fork() to wait for it. So a child gets a new one, and with it what its only thread
// holds.
class capture_lock {
public:
    void lock() {
        mutex_.lock();
        note(hold::alone);
    }
    void unlock() {
        note(hold::none);
        mutex_.unlock();
    }
    void lock_shared() {
        mutex_.lock_shared();
        note(hold::shared);
    }
    void unlock_shared() {
        note(hold::none);
        mutex_.unlock_shared();
    }
    // In the child, whose other threads are gone: some of them perhaps in the compiler.
    void renew() noexcept {
        int const own = held_ == hold::none ? 0 : 1;
        if (compiling_.exchange(own) > own) left_busy_.store(true);
        new (&mutex_) std::shared_mutex;
        if (held_ == hold::alone) mutex_.lock();
        if (held_ == hold::shared) mutex_.lock_shared();
        if (held_ != hold::alone) current.store(nullptr);
    }
    [[nodiscard]] bool was_left_busy() const noexcept { return left_busy_.load(); }

private:
    enum class hold { none, alone, shared };
    void note(hold how) noexcept {
        compiling_ += how == hold::none ? -1 : 1;
        held_ = how;
    }
    std::shared_mutex mutex_;
    std::atomic<int> compiling_{0};
    std::atomic<bool> left_busy_{false};
    static constinit thread_local hold held_;  // of no thread more than one
};
constinit thread_local capture_lock::hold capture_lock::held_ = hold::none;
capture_lock capture_mutex;

[[maybe_unused]] int const renewed = ::pthread_atfork(nullptr, nullptr, [] { capture_mutex.renew(); });

// What the compiler reads for itself: the kernel's own texts (/proc/cpuinfo) and devices. By what they are and not by where:
// /dev/shm holds ordinary files, and so does what /proc/self/cwd leads to.
bool is_the_kernels(char const* path) {
    // Nothing that a source could include and compile; the others are headers to whoever includes them.
    constexpr std::string_view about_the_machine[] = {"/proc/cpuinfo",     "/proc/meminfo",    "/proc/stat",
                                                      "/proc/vmstat",      "/proc/self/maps",  "/proc/self/status",
                                                      "/proc/self/stat",   "/proc/self/statm", "/proc/self/mountinfo",
                                                      "/proc/self/cgroup", "/proc/mounts",     "/proc/self/mounts"};
    bool const is_near = std::any_of(std::begin(kernel_places), std::end(kernel_places),
                                     [&](std::string_view place) { return std::string_view{path}.starts_with(place); });
    struct ::stat about {};
    if (!is_near || ::stat(path, &about) != 0) return false;
    if (S_ISCHR(about.st_mode)) return true;
    std::string_view const name{path};
    bool const is_known = std::ranges::find(about_the_machine, name) != std::end(about_the_machine);
    return is_known && base::file_system_at(path).kind == base::file_system::procfs;
}

std::FILE* hooked_fopen(char const* path, char const* mode) {
    auto* const capture = current.load(std::memory_order_acquire);
    bool const reads = mode != nullptr && mode[0] == 'r' && std::strchr(mode, '+') == nullptr;
    if (capture == nullptr || is_the_kernels(path)) return std::fopen(path, mode);
    return reads ? capture->open(path) : capture->create(path, mode);
}

// NVRTC asks what a path is before it opens it. Old binaries import __xstat, newer ones stat; on 64-bit Linux the *64
// forms have the same layout.
int hooked_stat(char const* path, struct ::stat* out) {
    auto* const capture = current.load(std::memory_order_acquire);
    if (capture == nullptr || is_the_kernels(path)) return ::stat(path, out);
    return capture->stat(path, out);
}

int hooked_xstat(int, char const* path, struct ::stat* out) { return hooked_stat(path, out); }

void* hooked_mmap(void* where, std::size_t size, int protection, int flags, int fd, ::off_t from) {
    auto* const capture = current.load(std::memory_order_acquire);
    // Private pages of a file cost a page of the file, and a copy, each: anonymous ones are the same zeros for nothing.
    bool const is_blank = capture != nullptr && fd >= 0 && (flags & MAP_PRIVATE) != 0 && capture->is_blank(fd);
    if (!is_blank) return ::mmap(where, size, protection, flags, fd, from);
    return ::mmap(where, size, protection, flags | MAP_ANONYMOUS, -1, 0);
}

struct hook {
    std::string_view import;
    void* replacement;
};

auto hooks() {
    return std::array{
        hook{"fopen", reinterpret_cast<void*>(&hooked_fopen)},
        hook{"fopen64", reinterpret_cast<void*>(&hooked_fopen)},
        hook{"stat", reinterpret_cast<void*>(&hooked_stat)},
        hook{"stat64", reinterpret_cast<void*>(&hooked_stat)},
        hook{"lstat", reinterpret_cast<void*>(&hooked_stat)},
        hook{"lstat64", reinterpret_cast<void*>(&hooked_stat)},
        hook{"__xstat", reinterpret_cast<void*>(&hooked_xstat)},
        hook{"__xstat64", reinterpret_cast<void*>(&hooked_xstat)},
        hook{"__lxstat", reinterpret_cast<void*>(&hooked_xstat)},
        hook{"__lxstat64", reinterpret_cast<void*>(&hooked_xstat)},
        hook{"mmap", reinterpret_cast<void*>(&hooked_mmap)},
        hook{"mmap64", reinterpret_cast<void*>(&hooked_mmap)},
    };
}

struct hooked_libraries {
    base::forkable_mutex mutex;
    std::set<void*> done;
};
constinit base::made_once<hooked_libraries> hooked_here;

struct dynamic_section {
    ElfW(Sym) const* symbols = nullptr;
    char const* strings = nullptr;
    ElfW(Rela) const* relocations[2] = {};
    std::size_t counts[2] = {};
};

dynamic_section read_dynamic(link_map const& map) {
    dynamic_section out;
    // glibc rewrites these to absolute addresses, other loaders leave them relative. What is absolute may lie anywhere: `kiln run` gives a
    // library another table of symbols.
    constexpr ElfW(Addr) longer_than_any_library = 1ULL << 32;
    auto address = [&](ElfW(Addr) value) { return value < longer_than_any_library ? value + map.l_addr : value; };
    for (auto const* d = map.l_ld; d->d_tag != DT_NULL; ++d) {
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

bool is_import(ElfW(Rela) const& r) {
    auto const type = ELF64_R_TYPE(r.r_info);
#if defined(__x86_64__)
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
    return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
#else
    return false && type;
#endif
}

bool point_at(void** slot, void* replacement) {
    auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    auto const start = reinterpret_cast<std::uintptr_t>(slot) & ~(page - 1);
    // The slot may lie in memory that was made read-only after relocation.
    if (::mprotect(reinterpret_cast<void*>(start), page, PROT_READ | PROT_WRITE) != 0) return false;
    __atomic_store_n(slot, replacement, __ATOMIC_RELEASE);
    return true;
}

}  // namespace

result<void> hook_opens(void* library) {
    auto& here = hooked_here.get([] { return std::make_unique<hooked_libraries>(); });
    std::lock_guard const lock{here.mutex};
    if (here.done.contains(library)) return {};

    link_map* map = nullptr;
    if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) {
        return fail(errc::unsupported, "cannot look into the compiler library: {}", ::dlerror());
    }
    auto const dynamic = read_dynamic(*map);
    auto const all = hooks();
    int hooked = 0;
    for (int table = 0; table < 2 && dynamic.symbols != nullptr && dynamic.strings != nullptr; ++table) {
        for (std::size_t i = 0; i < dynamic.counts[table]; ++i) {
            auto const& r = dynamic.relocations[table][i];
            if (!is_import(r)) continue;
            std::string_view const name = dynamic.strings + dynamic.symbols[ELF64_R_SYM(r.r_info)].st_name;
            for (auto const& h : all) {
                if (h.import != name || !point_at(reinterpret_cast<void**>(map->l_addr + r.r_offset), h.replacement))
                    continue;
                if (name.starts_with("fopen")) ++hooked;
            }
        }
    }
    if (hooked == 0)
        return fail(errc::unsupported, "{} does not import fopen: its header reads cannot be seen", map->l_name);
    here.done.insert(library);
    return {};
}

void forget_hooks(void* library) {
    auto* const here = hooked_here.peek();
    if (here == nullptr) return;
    std::lock_guard const lock{here->mutex};
    here->done.erase(library);
}

scoped_capture::scoped_capture(header_answers& answers) {
    capture_mutex.lock();
    current.store(&answers, std::memory_order_release);
}

scoped_capture::~scoped_capture() {
    current.store(nullptr, std::memory_order_release);
    capture_mutex.unlock();
}

bool was_compiler_left_busy() noexcept { return capture_mutex.was_left_busy(); }

without_capture::without_capture() { capture_mutex.lock_shared(); }
without_capture::~without_capture() { capture_mutex.unlock_shared(); }

}  // namespace kiln::compile
