// SPDX-License-Identifier: Apache-2.0
#include "standin.hpp"

#include "base/file_state.hpp"
#include "base/load_library.hpp"
#include "base/quick_replace.hpp"
#include "base/quiet_writes.hpp"
#include "compile/environment.hpp"
#include "intercept/program_name.hpp"
#include "intercept/run_events.hpp"
#include "intercept/shut_in.hpp"

#include <ctime>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

extern char** environ;

namespace kiln::intercept {

namespace {

std::string variable(char const* name) {
    auto const* const value = ::secure_getenv(name);
    return value == nullptr ? std::string{} : std::string{value};
}

// The library we were given out for: hook.c writes over it before anything of ours runs. Where nothing was written our own link
// map has its name. Behind it: whether the program had that library without us before.
constexpr std::string_view not_told = "KILN_REAL_PATH_";
constexpr std::size_t longest_path = 512;
[[gnu::used]] constinit char volatile real_path[longest_path + 8] = "KILN_REAL_PATH_";

std::string path_as_told() {
    std::string told;
    for (auto const* at = real_path; *at != '\0'; ++at) told += *at;
    return told;
}

std::string path_of_real(void const* own) {
    if (auto told = path_as_told(); told != not_told) return told;
    Dl_info about{};
    ::link_map* map = nullptr;
    base::loader_use const use;
    if (::dladdr1(own, &about, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr) return {};
    return map->l_name == nullptr ? std::string{} : std::string{map->l_name};
}

constinit base::made_once<standin> only;

}  // namespace

// Where what we keep for each thread begins. AddressSanitizer (gcc's to 12) takes what it finds 16 bytes behind the beginning of a page for memory of
// an old glibc, and the 16 bytes before it for what that says of it; there the first piece of a size lies that a program asked for, and its search
// for leaks then ends the program. On a multiple of 32 nothing of ours lies there. Used by nobody: kept by an option of the linker.
extern "C" {
[[gnu::visibility("hidden")]] alignas(32) constinit thread_local char kiln_thread_begin = 0;
}

namespace {

constexpr std::string_view of_its_own = "the program is under a filter of system calls of its own";

base::file_state state_of_file(std::string const& path) {
    base::file_look about;
    return base::look_at(path.c_str(), about) == 0 ? about.state : base::file_state{};
}

// The file we were given out for, as it was then: by the time somebody uses it there may be another in its place.
constinit base::file_state when_loaded{};

// What the real library wants done at exit. It is opened late, so that among the exit functions of the process its own would come before those
// that the program registered earlier, and that may use it. They are kept here until the loader ends the library itself, after all of those.
struct exit_call {
    void (*function)(void*);
    void* argument;
    void* owner;
};

class exit_calls {
public:
    void add(exit_call const& one) {
        std::lock_guard const lock{mutex_};
        all_.push_back(one);
    }
    // The last that is left of that owner.
    [[nodiscard]] std::optional<exit_call> take(void const* owner) {
        std::lock_guard const lock{mutex_};
        for (auto at = all_.rbegin(); at != all_.rend(); ++at) {
            if (at->owner != owner) continue;
            auto const out = *at;
            all_.erase(std::next(at).base());
            return out;
        }
        return std::nullopt;
    }

private:
    base::forkable_mutex mutex_;
    std::vector<exit_call> all_;
};
constinit base::made_once<exit_calls> kept_for_exit;

[[gnu::destructor]] void add_counters() {
    (void)guarded(0, 0, [] {
        if (auto* const made = is_shut_in() ? nullptr : only.peek()) {
            made->store.flush();
            made->tell_headers();
        }
        return 0;
    });
}

}  // namespace

real_library::real_library(void const* own) : path_{path_of_real(own)} {}

bool real_library::may_have_made_some() const noexcept { return is_open() || real_path[longest_path] != 0; }

std::string real_library::path() {
    std::lock_guard const lock{mutex_};
    return path_;
}

// What is found out takes locks of its own, so nothing is held meanwhile: fork() waits for one lock of a thread and never for two.
std::string real_library::toolchain() {
    std::string path;
    {
        std::lock_guard const lock{mutex_};
        if (toolchain_) return *toolchain_;
        path = path_;
    }
    auto found = toolchain_of(path);
    bool const is_replaced = state_of_file(path) != when_loaded;
    std::lock_guard const lock{mutex_};
    if (toolchain_) return *toolchain_;
    is_replaced_ = is_replaced;
    if (found.empty() && !is_replaced) return {};
    return toolchain_.emplace(is_replaced ? std::string{} : std::move(found));
}

void real_library::begin_anew(std::string path) {
    std::lock_guard const lock{mutex_};
    if (handle_.load() != nullptr) return;
    if (!path.empty()) path_ = std::move(path);
    toolchain_.reset();
}

std::string real_library::why_unknown() {
    std::lock_guard const lock{mutex_};
    return is_replaced_ ? "the compiler was replaced after it had been loaded" : "the compiler cannot be identified";
}

void* real_library::open() {
    std::string toolchain, path;
    {
        std::lock_guard const lock{mutex_};
        if (auto* const handle = handle_.load()) return handle;
        toolchain = toolchain_.value_or("");
        path = path_;
    }
    auto opened = is_shut_in() ? open_unseen(path, when_loaded) : open_compiler(path, toolchain);
    {
        std::lock_guard const lock{mutex_};
        if (handle_.load() == nullptr) {
            handle_.store(opened.handle);
            opened_ = std::move(opened);
            return opened_.handle;
        }
    }
    close_compiler(opened);  // another thread has it, too
    return handle_.load();
}

void real_library::close() {
    opened_compiler opened;
    {
        std::lock_guard const lock{mutex_};
        opened = std::exchange(opened_, {});
        symbols_.clear();
        handle_.store(nullptr);
    }
    close_compiler(opened);
}

std::optional<void*> real_library::known_symbol(char const* name) {
    std::lock_guard const lock{mutex_};
    auto const found = symbols_.find(std::string_view{name});
    return found == symbols_.end() ? std::nullopt : std::optional{found->second};
}

void* real_library::symbol(char const* name) {
    if (auto const known = known_symbol(name)) return *known;
    auto* const handle = open();
    if (handle == nullptr) return nullptr;
    auto* const found = [&] {
        base::loader_use const use;
        return ::dlsym(handle, name);
    }();
    std::lock_guard const lock{mutex_};
    if (handle_.load() == handle) symbols_.emplace(name, found);
    return found;
}

bool real_library::can_be_watched() {
    if (toolchain().empty() || open() == nullptr) return false;
    std::lock_guard const lock{mutex_};
    return opened_.is_watched;
}

standin& standin::the_only(std::string_view library, void const* own) {
    return only.get([&] {
        auto settings = base::config::load();
        if (is_shut_in()) settings.set("KILN_DISABLE", "1", base::origin::call);
        return std::unique_ptr<standin>{new standin{library, own, settings}};
    });
}

standin::standin(std::string_view library, void const* own, base::config const& settings)
    : real{own},
      store{settings, variable("KILN_RUN_CAPSULE")},
      workers{variable("KILN_RUN_WORKERS")},
      library_{library},
      program_{was_shut_in() ? std::string{} : name_of_this_program()},
      log_{variable("KILN_RUN_LOG")},
      requests_{variable("KILN_RUN_REQUESTS")},
      recent_{variable("KILN_RUN_RECENT")},
      has_events_{!variable("KILN_EVENTS").empty()},
      verifies_{variable("KILN_RUN_VERIFY") == "1"} {
    if (auto const& jit = settings.text("KILN_JIT"); jit == "forbid") jit_ = jit_policy::forbid;
    else if (jit == "warn") jit_ = jit_policy::warn;
    remember_compilers(settings);
    store.tell_rejections_to([this](store::address const& at, store::miss why) { tell_rejection(at, why); });
    if (!was_shut_in()) store.headers().look_at(variable("KILN_RUN_KNOWN"));
}

void standin::record(base::digest const& request, foreign_job const& what) const {
    auto const file = requests_ + "/" + request.hex();
    if (::access(file.c_str(), F_OK) == 0) return;
    base::quiet_writes const quiet;
    (void)base::replace_file(file, encode(what));
}

void standin::tell_headers() { append_headers(log_, store.headers().to_be_read_ahead()); }

void standin::share_headers(std::vector<known_file> files) {
    constexpr std::size_t worth_it = 16;
    if (!recent_.empty() && files.size() >= worth_it) {
        base::quiet_writes const quiet;
        (void)base::replace_quickly(recent_, encode(std::span<known_file const>{files}));
    }
    store.headers().take(std::move(files));
}

// Only what is fresh: times tell less and less the longer they are ago.
void standin::take_shared_headers() {
    constexpr std::time_t fresh_s = 60;
    struct ::stat about {};
    if (recent_.empty() || ::stat(recent_.c_str(), &about) != 0) return;
    if (auto const age = std::time(nullptr) - about.st_mtime; age < 0 || age > fresh_s) return;
    auto const data = base::read_file(recent_);
    if (data && *data) store.headers().take(decode_known_files(**data));
}

std::string standin::not_serving() { return is_shut_in() ? std::string{of_its_own} : not_serving_otherwise(); }

std::string standin::not_serving_otherwise() {
    if (compile::trust_of_process() == compile::trust::secure) return "raised privileges";
    if (store.empty()) return "no cache directory";
    if (auto name = compile::result_changing_variable(environ); !name.empty()) return name + " is set";
    // The compiler works out constants as its thread does.
    if (!compile::computes_as_usual())
        return "this thread rounds otherwise than to the nearest number, or writes a decimal comma";
    if (real.toolchain().empty()) return real.why_unknown();
    return {};
}

std::string standin::remove(store::address const& at) {
    return store.remove(at) ? "; it is removed from the cache"
                            : "; it stays in a cache or capsule that cannot be written: build that again";
}

event_log& standin::events() {
    auto& out = event_log::process();
    auto const process = static_cast<int>(::getpid());
    if (introduced_.exchange(process) != process) out.emit(introduction(program_));
    return out;
}

void standin::tell_rejection(store::address const& at, store::miss why) noexcept {
    if (!has_events_) return;
    (void)guarded(0, 0, [&] {
        base::quiet_writes const quiet;
        event out{.kind = event_kind::rejected, .reason = name_of(why), .detail = program_};
        out.key = at.key.prefix();
        out.request = at.request.prefix();
        events().emit(out);
        return 0;
    });
}

void standin::tell(happening h) noexcept {
    if (was_shut_in()) return;
    h.process = static_cast<int>(::getpid());
    (void)guarded(0, 0, [&] {
        h.library = library_;
        h.by = program_;
        append(log_, h);
        bool const is_made = h.kind == happening::what::made || h.kind == happening::what::failed;
        bool const joined = h.kind == happening::what::answered && h.waited.count() > 0;
        if (is_made || joined)
            store.count_wait(std::chrono::duration_cast<std::chrono::milliseconds>(is_made ? h.took : h.waited));
        if (!has_events_) return 0;
        base::quiet_writes const quiet;
        auto& log = events();
        for (auto const& one : events_of(h, base::now_ns())) log.emit(one);
        return 0;
    });
}

}  // namespace kiln::intercept

// The bridge is all that comes and goes; it calls these, with the loader's lock held.
extern "C" [[gnu::visibility("default"), gnu::used]] void kiln_opened() {
    using namespace kiln::intercept;
    (void)guarded(0, 0, [] {
        auto* const made = only.peek();
        if (made == nullptr || !made->real.is_open()) {
            auto path = path_of_real(&when_loaded);
            when_loaded = state_of_file(path);
            if (made != nullptr) made->real.begin_anew(std::move(path));
        }
        if (variable("KILN_RUN_EAGER") == "1") self().real.open_now();
        return 0;
    });
}

// The real library goes at once: the program may write over its file, or remove it. Not at the end of the process; see hook.c.
extern "C" [[gnu::visibility("default"), gnu::used]] void kiln_closed() {
    using namespace kiln::intercept;
    (void)guarded(0, 0, [] {
        if (auto* const made = only.peek(); made != nullptr) made->real.close();
        return 0;
    });
}

// What hook.c gives the real library for these two functions of libc.
extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* owner) noexcept;
extern "C" void __cxa_finalize(void* owner);

extern "C" [[gnu::visibility("default"), gnu::used]] int kiln_at_exit(void (*function)(void*), void* argument,
                                                                      void* owner) {
    using namespace kiln::intercept;
    if (owner == nullptr) return __cxa_atexit(function, argument, owner);
    return guarded(-1, -1, [&] {
        kept_for_exit.get([] { return std::make_unique<exit_calls>(); }).add({function, argument, owner});
        return 0;
    });
}

extern "C" [[gnu::visibility("default"), gnu::used]] void kiln_finalize(void* owner) {
    using namespace kiln::intercept;
    auto* const kept = kept_for_exit.peek();
    while (auto const next = kept == nullptr ? std::nullopt : kept->take(owner)) next->function(next->argument);
    __cxa_finalize(owner);
}
