// SPDX-License-Identifier: Apache-2.0
#include "standin.hpp"

#include "compile/environment.hpp"
#include "compile/open_hook.hpp"
#include "cuda/file_content.hpp"
#include "cuda/loaded_library.hpp"
#include "cuda/nvrtc_builtins.hpp"
#include "intercept/program_name.hpp"
#include "intercept/quiet_writes.hpp"
#include "intercept/run_events.hpp"
#include "store/store.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

extern char** environ;

namespace kiln::intercept {

namespace {

namespace fs = std::filesystem;

std::string variable(char const* name) {
    auto const* const value = ::secure_getenv(name);
    return value == nullptr ? std::string{} : std::string{value};
}

// Our own link map has the name of the library we were given out for: see hook.c.
std::string path_of_link_map(void const* own) {
    Dl_info about{};
    ::link_map* map = nullptr;
    if (::dladdr1(own, &about, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr) return {};
    return map->l_name == nullptr ? std::string{} : std::string{map->l_name};
}

// NVRTC asks for its built-ins by bare name, and not every one has a run path.
void open_builtins_in(fs::path const& directory) {
    std::error_code failed;
    for (fs::directory_iterator at{directory, failed}, end; !failed && at != end; at.increment(failed)) {
        if (at->path().filename().native().starts_with("libnvrtc-builtins.so."))
            (void)::dlopen(at->path().c_str(), RTLD_NOW | RTLD_LOCAL);
    }
}

std::atomic<standin*> only{nullptr};

[[gnu::destructor]] void add_counters() {
    (void)guarded(0, 0, [] {
        if (auto* const made = only.load()) made->store.flush();
        return 0;
    });
}

}  // namespace

real_library::real_library(void const* own) : path_{path_of_link_map(own)} {
    auto const slash = path_.rfind('/');
    if (slash == path_.npos) {
        failed_ = true;
        return;
    }
    directory_ = path_.substr(0, slash);
    file_ = path_.substr(slash + 1);
    is_nvrtc_ = file_.starts_with("libnvrtc.");
}

std::string const& real_library::toolchain() {
    std::lock_guard const lock{mutex_};
    if (toolchain_) return *toolchain_;
    toolchain_.emplace();
    quiet_writes const quiet;  // digests of files are remembered on disk
    auto const id = failed_ ? fail(errc::not_found, "no path") : cuda::identify_file(path_);
    if (!id) return *toolchain_;
    auto const builtins = is_nvrtc_ ? cuda::find_builtins(path_) : cuda::nvrtc_builtins{};
    if (!builtins) return *toolchain_;
    *toolchain_ =
        fmt::format("{} {}{}{}", file_, id->build_id, builtins->content.empty() ? "" : " ", builtins->content);
    return *toolchain_;
}

void* real_library::open() {
    std::lock_guard const lock{mutex_};
    if (auto* const handle = handle_.load(); handle != nullptr || failed_) return handle;
    if (is_nvrtc_) open_builtins_in(directory_);
    // The hook lets this spelling through.
    auto* const handle = ::dlopen((directory_ + "/./" + file_).c_str(), RTLD_NOW | RTLD_LOCAL);
    failed_ = handle == nullptr;
    if (failed_) return nullptr;
    bool const hooked = !is_nvrtc_ || compile::hook_opens(handle);
    auto* const known = ::dlsym(handle, is_nvrtc_ ? "nvrtcVersion" : "nvJitLinkVersion");
    auto const loaded = known == nullptr ? fail(errc::not_found, "no version") : cuda::identify(known);
    watched_ = hooked && loaded && toolchain_ && toolchain_->starts_with(fmt::format("{} {}", file_, loaded->build_id));
    handle_.store(handle);
    return handle;
}

void* real_library::symbol(char const* name) {
    auto* const handle = open();
    return handle == nullptr ? nullptr : ::dlsym(handle, name);
}

bool real_library::can_be_watched() {
    if (toolchain().empty() || open() == nullptr) return false;
    std::lock_guard const lock{mutex_};
    return watched_;
}

standin& standin::make_only(std::string_view library, void const* own) {
    auto* const made = new standin{library, own, base::config::load()};
    only.store(made);
    return *made;
}

standin::standin(std::string_view library, void const* own, base::config const& settings)
    : real{own},
      store{settings},
      library_{library},
      program_{name_of_this_program()},
      log_{variable("KILN_RUN_LOG")},
      has_events_{!variable("KILN_EVENTS").empty()},
      verifies_{variable("KILN_RUN_VERIFY") == "1"} {
    if (auto const& jit = settings.text("KILN_JIT"); jit == "forbid") jit_ = jit_policy::forbid;
    else if (jit == "warn") jit_ = jit_policy::warn;
    auto const kept = store::options_from(settings);
    if (kept.disk) {
        cuda::remember_contents_in(kept.disk->root / "contents", kept.disk->mode == store::access::read_only
                                                                     ? cuda::memory_access::read_only
                                                                     : cuda::memory_access::read_write);
    }
}

std::string standin::not_serving() {
    if (compile::trust_of_process() == compile::trust::secure) return "raised privileges";
    if (store.empty()) return "no cache directory";
    if (auto name = compile::result_changing_variable(environ); !name.empty()) return name + " is set";
    if (real.toolchain().empty()) return "the compiler cannot be identified";
    return {};
}

void standin::tell(happening h) noexcept {
    h.process = static_cast<int>(::getpid());
    (void)guarded(0, 0, [&] {
        h.library = library_;
        h.by = program_;
        append(log_, h);
        if (!has_events_) return 0;
        quiet_writes const quiet;
        auto& events = event_log::process();
        if (introduced_.exchange(h.process) != h.process) events.emit(introduction(program_));
        for (auto const& one : events_of(h, base::now_ns())) events.emit(one);
        return 0;
    });
}

}  // namespace kiln::intercept
