// SPDX-License-Identifier: Apache-2.0
#include "intercept/compiler_library.hpp"

#include "base/load_library.hpp"
#include "base/quiet_writes.hpp"
#include "compile/open_hook.hpp"
#include "cuda/file_content.hpp"
#include "cuda/loaded_library.hpp"
#include "cuda/nvrtc_builtins.hpp"
#include "store/store.hpp"

#include <dlfcn.h>
#include <filesystem>

namespace kiln::intercept {

namespace {

namespace fs = std::filesystem;

struct parts {
    std::string directory, file;
    [[nodiscard]] bool is_nvrtc() const { return file.starts_with("libnvrtc."); }
};

parts parts_of(std::string const& path) {
    auto const slash = path.rfind('/');
    if (slash == path.npos) return {};
    return {path.substr(0, slash), path.substr(slash + 1)};
}

// NVRTC asks for its built-ins by bare name, and not every one has a run path: those it is to have are there before it asks.
std::vector<void*> open_builtins_in(fs::path const& directory) {
    std::vector<void*> out;
    std::error_code failed;
    for (fs::directory_iterator at{directory, failed}, end; !failed && at != end; at.increment(failed)) {
        if (at->path().filename().native().starts_with("libnvrtc-builtins.so."))
            out.push_back(base::load_library(at->path().c_str(), RTLD_NOW | RTLD_LOCAL));
    }
    return out;
}

// A worker's loader may have another path than the program's, which is the one that counts.
std::vector<void*> open_builtins_of(std::string const& path, std::string_view toolchain) {
    auto const found = cuda::builtins_in_use(path);
    bool const is_beside = !found || found->elsewhere.empty() || toolchain_of(path, builtins::beside) == toolchain;
    if (is_beside) return open_builtins_in(found ? found->directory : fs::path{parts_of(path).directory});
    std::vector<void*> out;
    for (auto const& file : found->elsewhere) out.push_back(base::load_library(file.c_str(), RTLD_NOW | RTLD_LOCAL));
    return out;
}

// Between folder and file. The hook lets what ends so through. The loader knows what it has loaded by name, too, and a path may lead to another
// file by now: so each file has a spelling of its own.
std::string spelling_of(base::file_state const& file) {
    std::uint64_t mixed = 14695981039346656037u;
    for (auto const number : {file[0], file[1], file[2], file[3]})
        mixed = (mixed ^ number ^ (mixed >> 29)) * 1099511628211u;
    std::string out = "/";
    for (int bit = 32; bit < 64; ++bit) out += (mixed >> bit & 1) != 0 ? "./" : "/";
    return out + "/.//./";
}

}  // namespace

void remember_compilers(base::config const& settings) {
    auto const kept = store::options_from(settings);
    if (!kept.disk) return;
    cuda::remember_contents_in(kept.disk->root / "contents", kept.disk->mode == store::access::read_only
                                                                 ? cuda::memory_access::read_only
                                                                 : cuda::memory_access::read_write);
}

std::string toolchain_of(std::string const& path, builtins which) {
    auto const what = parts_of(path);
    if (what.file.empty()) return {};
    base::quiet_writes const quiet;
    auto const id = cuda::identify_file(path);
    if (!id) return {};
    if (!what.is_nvrtc()) return fmt::format("{} {}", what.file, id->build_id);
    auto const parts = which == builtins::beside ? cuda::find_builtins(path) : cuda::builtins_in_use(path);
    return parts ? fmt::format("{} {} {}", what.file, id->build_id, parts->content) : std::string{};
}

opened_compiler open_unseen(std::string const& path, base::file_state const& file) {
    auto const what = parts_of(path);
    if (what.file.empty()) return {};
    return {base::load_library((what.directory + spelling_of(file) + what.file).c_str(), RTLD_NOW | RTLD_LOCAL)};
}

void close_compiler(opened_compiler const& opened) {
    if (opened.handle != nullptr) compile::forget_hooks(opened.handle);
    base::loader_use const use;
    if (opened.handle != nullptr) ::dlclose(opened.handle);
    for (auto* const one : opened.others) {
        if (one != nullptr) ::dlclose(one);
    }
}

opened_compiler open_compiler(std::string const& path, std::string_view toolchain) {
    auto const what = parts_of(path);
    auto others = what.is_nvrtc() ? open_builtins_of(path, toolchain) : std::vector<void*>{};
    base::file_look about;
    if (base::look_at(path.c_str(), about) != 0) about = {};
    auto* const handle = open_unseen(path, about.state).handle;
    if (handle == nullptr) {
        close_compiler({.others = std::move(others)});
        return {};
    }
    bool const hooked = !what.is_nvrtc() || compile::hook_opens(handle);
    auto* const known = [&] {
        base::loader_use const use;
        return ::dlsym(handle, what.is_nvrtc() ? "nvrtcVersion" : "nvJitLinkVersion");
    }();
    auto const loaded = known == nullptr ? fail(errc::not_found, "no version") : cuda::identify(known);
    bool const is_meant =
        loaded && !toolchain.empty() && toolchain.starts_with(fmt::format("{} {}", what.file, loaded->build_id));
    // Its built-ins have no build id: they may have been replaced before they were opened.
    return {handle, hooked && is_meant && toolchain_of(path) == toolchain, std::move(others)};
}

}  // namespace kiln::intercept
