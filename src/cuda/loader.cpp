// SPDX-License-Identifier: Apache-2.0
#include "cuda/loader.hpp"

#include "base/fork_guard.hpp"
#include "cuda/nvrtc_builtins.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <utility>

namespace kiln::cuda {

namespace {

template <class T>
using shared_result = result<std::shared_ptr<T const>>;

// Under its lock. A child of fork() finds it whole.
template <class Once, class Answer>
void keep(Once& once, Answer made) {
    base::no_fork_meanwhile const whole;
    once.answer.emplace(std::move(made));
}

// Runs `make` under the lock unless there is an answer already.
template <class Once, class Make>
auto remember(Once& once, Make&& make) {
    std::scoped_lock const lock{once.mutex.get()};
    if (!once.answer) keep(once, make());
    return *once.answer;
}

// The same for a file that may be mended and tried again.
template <class Once, class Make>
auto remember_success(Once& once, Make&& make) {
    std::scoped_lock const lock{once.mutex.get()};
    if (!once.answer || !*once.answer) keep(once, make());
    return *once.answer;
}

shared_result<nvrtc_api> open_nvrtc(candidate const& what, base::load_watcher watcher) {
    KILN_TRY(auto found, find_builtins(what.file));
    KILN_TRY(auto library, open_library(what, watcher));
    KILN_TRY(auto api, resolve_nvrtc(symbols_of(library)));
    KILN_CHECK(open_builtins(found, api.major, api.minor));
    // An upgrade may have come between.
    KILN_TRY(auto const again, find_builtins(what.file));
    if (again.content != found.content)
        return fail(errc::io, "{}: its builtins changed while they were opened", what.file.native());
    api.library = std::move(library);
    api.builtins = std::move(found.content);
    return std::make_shared<nvrtc_api const>(std::move(api));
}

shared_result<nvjitlink_api> open_nvjitlink(candidate const& what, base::load_watcher watcher) {
    KILN_TRY(auto library, open_library(what, watcher));
    KILN_TRY(auto api, resolve_nvjitlink(symbols_of(library)));
    api.library = std::move(library);
    return std::make_shared<nvjitlink_api const>(std::move(api));
}

constexpr std::string_view driver_remedy =
    "install NVIDIA's driver, or in a container start it with the GPU (--gpus all); compiling needs neither";

}  // namespace

loader& loader::process() {
    static constinit base::made_once<loader> instance;
    return instance.get([] { return std::make_unique<loader>(loader_options{}); });
}

loader::loader(loader_options options) : options_{std::move(options)} {}

shared_result<driver_api> loader::driver() {
    return remember(driver_, [&]() -> shared_result<driver_api> {
        std::string why;
        for (auto const& name : options_.driver_names) {
            auto library = open_library({{}, name});
            if (!library) {
                why += fmt::format("{}{}", why.empty() ? "" : "; ", library.error().message());
                continue;
            }
            KILN_TRY(auto api, resolve_driver(symbols_of(*library)));
            api.library = *std::move(library);
            return std::make_shared<driver_api const>(std::move(api));
        }
        return fail(errc::no_device, "no CUDA driver: {}; {}", why, driver_remedy);
    });
}

shared_result<driver_api> loader::started_driver() {
    return remember(started_, [&]() -> shared_result<driver_api> {
        KILN_TRY(auto api, driver());
        if (auto const status = api->init(0); status != CUDA_SUCCESS) {
            return fail(errc::no_device, "no usable GPU: cuInit: {}; {}", api->words(status), driver_remedy)
                .with_status(static_cast<int>(status));
        }
        ending_ = api->state.get();
        // The driver tears itself down in exit handlers too. This one is registered after cuInit and so runs before
        // those, and after the destructors of every static made since.
        if (this == &process()) static_cast<void>(std::atexit([] { process().note_exit(); }));
        return api;
    });
}

void loader::note_exit() noexcept {
    if (auto* const state = ending_.load()) state->exiting.store(true, std::memory_order_relaxed);
}

shared_result<nvrtc_api> loader::nvrtc_at(std::filesystem::path const& file, base::load_watcher watcher) {
    return remember_success(at(nvrtc_files_, file), [&] { return open_nvrtc({{}, file}, watcher); });
}

shared_result<nvjitlink_api> loader::nvjitlink_at(std::filesystem::path const& file, base::load_watcher watcher) {
    return remember_success(at(nvjitlink_files_, file), [&] { return open_nvjitlink({{}, file}, watcher); });
}

template <class T>
loader::once<T>& loader::at(std::map<std::filesystem::path, once<T>>& files, std::filesystem::path const& file) {
    std::scoped_lock const lock{files_mutex_};
    return files[file];
}

shared_result<context> loader::context_of(int ordinal) {
    KILN_TRY(auto api, started_driver());
    std::scoped_lock const lock{contexts_mutex_.get()};
    if (auto const known = contexts_.find(ordinal); known != contexts_.end()) return known->second;
    KILN_TRY(auto made, context::make(std::move(api), ordinal));
    base::no_fork_meanwhile const whole;
    contexts_.emplace(ordinal, made);
    return made;
}

shared_result<driver_api> load_driver() { return loader::process().driver(); }
shared_result<driver_api> start_driver() { return loader::process().started_driver(); }
shared_result<nvrtc_api> load_nvrtc(std::filesystem::path const& file, base::load_watcher watcher) {
    return loader::process().nvrtc_at(file, watcher);
}
shared_result<nvjitlink_api> load_nvjitlink(std::filesystem::path const& file, base::load_watcher watcher) {
    return loader::process().nvjitlink_at(file, watcher);
}
result<std::shared_ptr<context const>> context::of(int ordinal) { return loader::process().context_of(ordinal); }

}  // namespace kiln::cuda
