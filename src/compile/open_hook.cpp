// SPDX-License-Identifier: Apache-2.0
#include "compile/open_hook.hpp"

#include "base/file_systems.hpp"
#include "base/fork_guard.hpp"
#include "compile/import_slots.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kiln::compile {

namespace {

constexpr std::string_view kernel_places[] = {"/proc/", "/sys/", "/dev/"};

constinit std::atomic<header_answers*> current{nullptr};

constinit std::atomic<std::uint64_t> unknown_opens{0};  // on threads that have no turn

constinit thread_local thread_turn* turn_here = nullptr;
// From a turn's beginning to its end, functions of the program that are called meanwhile included. After one that was left for good for ever: the
// compiler may be locked.
constinit thread_local bool is_compiling_here = false;

// Held for the length of one compile: too long for fork() to wait for it. So a child gets a new one, and with it what its only thread
// holds.
class capture_lock {
public:
    void lock() {
        mutex_.lock();
        is_held_here_ = true;
    }
    void unlock() {
        is_held_here_ = false;
        mutex_.unlock();
    }
    // False: this thread is counted already.
    [[nodiscard]] bool count() noexcept {
        if (std::exchange(is_compiling_here, true)) return false;
        ++compiling_;
        return true;
    }
    void discount() noexcept {
        is_compiling_here = false;
        --compiling_;
    }
    // In the child, whose other threads are gone: some of them perhaps in the compiler.
    void renew() noexcept {
        int const own = is_compiling_here ? 1 : 0;
        if (compiling_.exchange(own) > own) left_busy_.store(true);
        new (&mutex_) std::mutex;
        if (is_held_here_) mutex_.lock();
        else current.store(nullptr);
    }
    [[nodiscard]] bool was_left_busy() const noexcept { return left_busy_.load(); }

private:
    std::mutex mutex_;
    std::atomic<int> compiling_{0};
    std::atomic<bool> left_busy_{false};
    static constinit thread_local bool is_held_here_;
};
constinit thread_local bool capture_lock::is_held_here_ = false;
capture_lock capture_mutex;

[[maybe_unused]] int const renewed = ::pthread_atfork(nullptr, nullptr, [] { capture_mutex.renew(); });

// Null: it is read as if we were not there.
header_answers* answers_here() noexcept {
    return turn_here == nullptr ? current.load(std::memory_order_acquire) : turn_here->answers();
}

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

// The same for a path that is looked at or opened.
header_answers* answers_for(char const* path) {
    bool const is_unknown = turn_here == nullptr;
    auto* const out = answers_here();
    if ((out == nullptr && !is_unknown) || path == nullptr || is_the_kernels(path)) return nullptr;
    if (is_unknown) ++unknown_opens;
    return out;
}

std::FILE* hooked_fopen(char const* path, char const* mode) {
    auto* const capture = answers_for(path);
    bool const reads = mode != nullptr && mode[0] == 'r' && std::strchr(mode, '+') == nullptr;
    if (capture == nullptr) return std::fopen(path, mode);
    return reads ? capture->open(path) : capture->create(path, mode);
}

// NVRTC asks what a path is before it opens it. Old binaries import __xstat, newer ones stat; on 64-bit Linux the *64
// forms have the same layout.
int hooked_stat(char const* path, struct ::stat* out) {
    auto* const capture = answers_for(path);
    return capture == nullptr ? ::stat(path, out) : capture->stat(path, out);
}

int hooked_xstat(int, char const* path, struct ::stat* out) { return hooked_stat(path, out); }

void* hooked_mmap(void* where, std::size_t size, int protection, int flags, int fd, ::off_t from) {
    auto* const capture = answers_here();
    // Private pages of a file cost a page of the file, and a copy, each: anonymous ones are the same zeros for nothing.
    bool const is_blank = capture != nullptr && fd >= 0 && (flags & MAP_PRIVATE) != 0 && capture->is_blank(fd);
    if (!is_blank) return ::mmap(where, size, protection, flags, fd, from);
    return ::mmap(where, size, protection, flags | MAP_ANONYMOUS, -1, 0);
}

// NVRTC before 13.1 would take these from the program as long as it reads, and end it with status 0. What is ignored it leaves alone.
void (*hooked_signal(int number, void (*handler)(int)))(int) {
    return number == SIGINT || number == SIGTERM ? SIG_IGN : std::signal(number, handler);
}

auto hooks() {
    return std::array{
        import_slot{"fopen", reinterpret_cast<void*>(&hooked_fopen)},
        import_slot{"fopen64", reinterpret_cast<void*>(&hooked_fopen)},
        import_slot{"stat", reinterpret_cast<void*>(&hooked_stat)},
        import_slot{"stat64", reinterpret_cast<void*>(&hooked_stat)},
        import_slot{"lstat", reinterpret_cast<void*>(&hooked_stat)},
        import_slot{"lstat64", reinterpret_cast<void*>(&hooked_stat)},
        import_slot{"__xstat", reinterpret_cast<void*>(&hooked_xstat)},
        import_slot{"__xstat64", reinterpret_cast<void*>(&hooked_xstat)},
        import_slot{"__lxstat", reinterpret_cast<void*>(&hooked_xstat)},
        import_slot{"__lxstat64", reinterpret_cast<void*>(&hooked_xstat)},
        import_slot{"mmap", reinterpret_cast<void*>(&hooked_mmap)},
        import_slot{"mmap64", reinterpret_cast<void*>(&hooked_mmap)},
        import_slot{"signal", reinterpret_cast<void*>(&hooked_signal)},
    };
}

struct hooked_libraries {
    base::forkable_mutex mutex;
    std::set<void*> done;
};
constinit base::made_once<hooked_libraries> hooked_here;

}  // namespace

result<void> hook_opens(void* library) {
    auto& here = hooked_here.get([] { return std::make_unique<hooked_libraries>(); });
    std::lock_guard const lock{here.mutex};
    if (here.done.contains(library)) return {};

    auto all = hooks();
    KILN_CHECK(point_imports(library, all));
    if (std::ranges::none_of(all, [](auto const& h) { return h.import.starts_with("fopen") && h.pointed > 0; }))
        return fail(errc::unsupported, "the compiler does not import fopen: its header reads cannot be seen");
    here.done.insert(library);
    return {};
}

void forget_hooks(void* library) {
    auto* const here = hooked_here.peek();
    if (here == nullptr) return;
    std::lock_guard const lock{here->mutex};
    here->done.erase(library);
}

thread_turn::thread_turn(header_answers* answers, arithmetic how)
    : answers_{answers}, before_{std::exchange(turn_here, this)}, is_first_{capture_mutex.count()}, how_{how} {
    take_up(this);
}

thread_turn::~thread_turn() {
    turn_here = before_;
    if (is_first_) capture_mutex.discount();
}

thread_turn* thread_turn::put_aside() noexcept {
    auto* const out = std::exchange(turn_here, nullptr);
    if (out != nullptr) out->usual_.reset();
    return out;
}

void thread_turn::take_up(thread_turn* again) noexcept {
    turn_here = again;
    if (again != nullptr && again->how_ == arithmetic::as_usual) again->usual_.emplace();
}

scoped_capture::scoped_capture(header_answers& answers) : thread_turn{&answers, arithmetic::as_usual} {
    capture_mutex.lock();
    current.store(&answers, std::memory_order_release);
}

scoped_capture::~scoped_capture() {
    current.store(nullptr, std::memory_order_release);
    capture_mutex.unlock();
}

thread_capture::thread_capture(header_answers& answers)
    : thread_turn{&answers, arithmetic::as_usual}, unknown_before_{unknown_opens.load()} {}

bool thread_capture::has_seen_all() const noexcept { return unknown_opens.load() == unknown_before_; }

bool was_compiler_left_busy() noexcept { return capture_mutex.was_left_busy(); }

}  // namespace kiln::compile
