// SPDX-License-Identifier: Apache-2.0
#include "cuda/loader.hpp"

#include <cstdlib>
#include <dlfcn.h>

namespace kiln::cuda {

namespace {

template <class T>
using shared_result = result<std::shared_ptr<T const>>;

// Runs `make` under the lock unless there is an answer already.
template <class Once, class Make>
auto remember(Once& once, Make&& make) {
    std::scoped_lock const lock{once.mutex};
    if (!once.answer) once.answer.emplace(make());
    return *once.answer;
}

// NVRTC asks the loader for its builtins by bare soname and has no run path of its own. Opening the file beside it first
// makes that question find the matching one, and find one at all outside the loader's path.
void open_builtins(nvrtc_api const& api) {
    auto const directory = api.library.identity.file.parent_path();
    auto const file = directory / fmt::format("libnvrtc-builtins.so.{}.{}", api.major, api.minor);
    std::error_code missing;
    if (std::filesystem::exists(file, missing)) static_cast<void>(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
}

shared_result<nvrtc_api> open_nvrtc(candidate const& what) {
    KILN_TRY(auto library, open_library(what));
    KILN_TRY(auto api, resolve_nvrtc(symbols_of(library)));
    api.library = std::move(library);
    open_builtins(api);
    return std::make_shared<nvrtc_api const>(std::move(api));
}

shared_result<nvjitlink_api> open_nvjitlink(candidate const& what) {
    KILN_TRY(auto library, open_library(what));
    KILN_TRY(auto api, resolve_nvjitlink(symbols_of(library)));
    api.library = std::move(library);
    return std::make_shared<nvjitlink_api const>(std::move(api));
}

// The first candidate that opens and resolves. When none does: the reason of one that was there but cannot be used, else
// where was looked.
template <class T>
shared_result<T> open_first(library_search const& search, std::string_view title,
                            std::span<std::string_view const> sonames, shared_result<T> (*open)(candidate const&)) {
    std::string unusable;
    auto code = errc::not_found;
    for (auto const& what : search.candidates(sonames)) {
        auto opened = open(what);
        if (opened) return opened;
        bool const absent = opened.error().message().find("cannot open shared object file") != std::string::npos;
        if (absent && what.from.kind == place_kind::loader_path) continue;
        unusable += fmt::format("; {}: {}", what.file.string(), opened.error().message());
        if (opened.error().code() == errc::unsupported) code = errc::unsupported;
    }
    return fail(
        code,
        "{} ({}) not found in {}{}. Install the CUDA toolkit or NVIDIA's wheels (pip install 'nvidia-cuda-nvrtc' "
        "'nvidia-nvjitlink'), or set KILN_CUDA_PATH to where they are",
        title, fmt::join(sonames, ", "), search.tried(), unusable);
}

constexpr std::string_view driver_remedy =
    "install NVIDIA's driver, or in a container start it with the GPU (--gpus all); compiling needs neither";

}  // namespace

loader& loader::process() {
    static auto& instance = *new loader{{.environment = search_environment::process()}};
    return instance;
}

loader::loader(loader_options options) : options_{std::move(options)}, search_{options_.environment} {}

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

shared_result<nvrtc_api> loader::nvrtc() {
    return remember(nvrtc_, [&] { return open_first<nvrtc_api>(search_, "NVRTC", nvrtc_sonames, open_nvrtc); });
}

shared_result<nvjitlink_api> loader::nvjitlink() {
    return remember(nvjitlink_,
                    [&] { return open_first<nvjitlink_api>(search_, "nvJitLink", nvjitlink_sonames, open_nvjitlink); });
}

shared_result<nvrtc_api> loader::nvrtc_at(std::filesystem::path const& file) {
    return remember(at(nvrtc_files_, file), [&] { return open_nvrtc({{}, file}); });
}

shared_result<nvjitlink_api> loader::nvjitlink_at(std::filesystem::path const& file) {
    return remember(at(nvjitlink_files_, file), [&] { return open_nvjitlink({{}, file}); });
}

template <class T>
loader::once<T>& loader::at(std::map<std::filesystem::path, once<T>>& files, std::filesystem::path const& file) {
    std::scoped_lock const lock{files_mutex_};
    return files[file];
}

shared_result<context> loader::context_of(int ordinal) {
    KILN_TRY(auto api, started_driver());
    std::scoped_lock const lock{contexts_mutex_};
    if (auto const known = contexts_.find(ordinal); known != contexts_.end()) return known->second;
    KILN_TRY(auto made, context::make(std::move(api), ordinal));
    contexts_.emplace(ordinal, made);
    return made;
}

shared_result<driver_api> load_driver() { return loader::process().driver(); }
shared_result<driver_api> start_driver() { return loader::process().started_driver(); }
shared_result<nvrtc_api> load_nvrtc() { return loader::process().nvrtc(); }
shared_result<nvrtc_api> load_nvrtc(std::filesystem::path const& file) { return loader::process().nvrtc_at(file); }
shared_result<nvjitlink_api> load_nvjitlink() { return loader::process().nvjitlink(); }
shared_result<nvjitlink_api> load_nvjitlink(std::filesystem::path const& file) {
    return loader::process().nvjitlink_at(file);
}
result<std::shared_ptr<context const>> context::of(int ordinal) { return loader::process().context_of(ordinal); }

}  // namespace kiln::cuda
