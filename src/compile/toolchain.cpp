// SPDX-License-Identifier: Apache-2.0
#include "compile/toolchain.hpp"

#include "base/digest.hpp"
#include "base/files.hpp"

#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <unistd.h>

namespace kiln::compile {

namespace {

namespace fs = std::filesystem;

// The loader's cache of sonames: header, then records of (flags, name offset, path offset, os version, hwcap).
std::string look_in_loader_cache(std::string_view text, std::string_view soname) {
    constexpr std::string_view magic = "glibc-ld.so.cache1.1";
    auto const start = text.find(magic);
    if (start == text.npos) return {};
    base::byte_reader in{base::as_bytes(text.substr(start + magic.size()))};
    auto const count = in.get_u32();
    in.get_raw(4 + 5 * 4);
    auto string_at = [&](std::uint32_t offset) -> std::string_view {
        if (start + offset >= text.size()) return {};
        auto const rest = text.substr(start + offset);
        return rest.substr(0, rest.find('\0'));
    };
    for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
        in.get_u32();
        auto const name = in.get_u32();
        auto const path = in.get_u32();
        in.get_raw(12);
        if (in.ok() && string_at(name) == soname) return std::string{string_at(path)};
    }
    return {};
}

// Where dlopen(soname) would find it. `cache` is read at the first need.
std::string look_on_loader_path(std::string_view soname, std::optional<base::bytes>& cache) {
    if (auto const* list = std::getenv("LD_LIBRARY_PATH")) {
        std::string_view rest = list;
        while (!rest.empty()) {
            auto const colon = std::min(rest.find(':'), rest.size());
            auto const file = fs::path{rest.substr(0, colon)} / soname;
            if (std::error_code why; colon > 0 && fs::exists(file, why)) return file;
            rest.remove_prefix(std::min(rest.size(), colon + 1));
        }
    }
    if (!cache) {
        auto data = base::read_file("/etc/ld.so.cache", std::size_t{64} << 20);
        cache = data && *data ? **std::move(data) : base::bytes{};
    }
    return look_in_loader_cache(base::as_text(*cache), soname);
}

result<tool> find_tool(cuda::library_search const& search, std::span<std::string_view const> sonames,
                       std::string_view what, std::string_view remedy) {
    std::optional<tool> found;
    std::optional<base::bytes> loader_cache;
    search.visit_candidates(sonames, [&](cuda::candidate const& c) {
        bool const bare = !c.file.is_absolute();
        std::string const path = bare ? look_on_loader_path(c.file.native(), loader_cache) : c.file.native();
        if (std::error_code why; path.empty() || (bare && !fs::exists(path, why))) return false;
        auto const id = build_id_of(path);
        if (id) found = tool{path, fmt::format("{} {}", what, *id), std::string{cuda::name_of(c.from.kind)}};
        return found.has_value();
    });
    if (found) return *std::move(found);
    return fail(errc::not_found, "{} not found; {}; looked in: {}", what, remedy, search.tried());
}

template <class Api, class Resolve>
result<std::shared_ptr<Api const>> open_once(std::string const& path, Resolve resolve) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<Api const>> opened;
    std::lock_guard const lock{mutex};
    if (auto const at = opened.find(path); at != opened.end()) return at->second;
    KILN_TRY(auto library, cuda::open_library({{}, path}));
    KILN_TRY(auto api, resolve(cuda::symbols_of(library)));
    api.library = library;
    return opened[path] = std::make_shared<Api const>(std::move(api));
}

}  // namespace

result<std::string> build_id_of(fs::path const& file) {
    KILN_TRY(auto const fd, base::open_file(file, O_RDONLY));
    auto read_at = [&](std::uint64_t offset, std::size_t size) -> std::optional<base::bytes> {
        base::bytes out(size);
        auto const count = ::pread(fd.get(), out.data(), size, static_cast<off_t>(offset));
        if (count != static_cast<ssize_t>(size)) return std::nullopt;
        return out;
    };
    Elf64_Ehdr header{};
    if (auto const raw = read_at(0, sizeof header)) std::memcpy(&header, raw->data(), sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return fail(errc::corrupt, "{}: not an ELF file", file.native());
    for (int i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment{};
        auto const raw = read_at(header.e_phoff + static_cast<std::uint64_t>(i) * sizeof segment, sizeof segment);
        if (!raw) break;
        std::memcpy(&segment, raw->data(), sizeof segment);
        if (segment.p_type != PT_NOTE || segment.p_filesz > (std::size_t{1} << 20)) continue;
        auto const notes = read_at(segment.p_offset, segment.p_filesz);
        if (!notes) continue;
        if (auto id = cuda::build_id_in(*notes, segment.p_align); !id.empty()) return id;
    }
    KILN_TRY(auto const all, base::read_file(file, std::size_t{2} << 30));
    if (!all) return fail(errc::not_found, "{}: not there any more", file.native());
    return "sha256:" + base::sha256_of(base::byte_span{*all}).hex();
}

result<tool> find_nvrtc(cuda::library_search const& search) {
    return find_tool(search, cuda::nvrtc_sonames, "nvrtc",
                     "install the CUDA toolkit, or 'pip install nvidia-cuda-nvrtc', or set KILN_CUDA_PATH");
}

result<tool> find_nvjitlink(cuda::library_search const& search) {
    return find_tool(search, cuda::nvjitlink_sonames, "nvjitlink",
                     "install the CUDA toolkit, or 'pip install nvidia-nvjitlink', or set KILN_CUDA_PATH");
}

toolchain_paths find_toolchain(cuda::library_search const& search) {
    toolchain_paths out;
    if (auto const nvrtc = find_nvrtc(search)) out.nvrtc = nvrtc->path;
    if (auto const nvjitlink = find_nvjitlink(search)) out.nvjitlink = nvjitlink->path;
    for (auto const& directory : search.toolkit_includes()) out.toolkit_includes.push_back(directory);
    return out;
}

result<std::shared_ptr<cuda::nvrtc_api const>> open_nvrtc(std::string const& path) {
    return open_once<cuda::nvrtc_api>(path, cuda::resolve_nvrtc);
}

result<std::shared_ptr<cuda::nvjitlink_api const>> open_nvjitlink(std::string const& path) {
    return open_once<cuda::nvjitlink_api>(path, cuda::resolve_nvjitlink);
}

std::string toolchain_text(cuda::nvrtc_api const& api) {
    return fmt::format("nvrtc {}", api.library.identity.build_id);
}
std::string toolchain_text(cuda::nvjitlink_api const& api) {
    return fmt::format("nvjitlink {}", api.library.identity.build_id);
}

}  // namespace kiln::compile
