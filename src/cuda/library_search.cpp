// SPDX-License-Identifier: Apache-2.0
#include "cuda/library_search.hpp"

#include "base/files.hpp"
#include "cuda/python_places.hpp"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

namespace kiln::cuda {

namespace fs = std::filesystem;

namespace {

std::string variable(char const* name) {
    auto const* value = ::secure_getenv(name);
    return value == nullptr ? std::string{} : std::string{value};
}

// What cannot be told is taken for there: trying it tells why it does not do, and the next place is not taken for this one. What
// is not for us to look at is nobody's toolkit.
bool is_there(fs::path const& path, fs::file_type kind) {
    std::error_code why;
    auto const found = fs::status(path, why).type();
    return found == kind || (found == fs::file_type::none && why != std::errc::permission_denied);
}

bool file_exists(fs::path const& path) { return is_there(path, fs::file_type::regular); }
bool directory_exists(fs::path const& path) { return is_there(path, fs::file_type::directory); }

// As it is where the working directory is not known.
fs::path made_absolute(fs::path const& path) {
    std::error_code why;
    auto out = fs::absolute(path, why);
    return why ? path : out;
}

// Folders of a root that may hold what is looked for: the usual ones of a toolkit, of conda and of wheels.
// `leaf` is "lib" or "include".
std::vector<fs::path> layouts(fs::path const& root, std::string const& leaf) {
    std::vector<fs::path> out;
    if (leaf == "lib") out.push_back(root / "lib64");
    out.push_back(root / leaf);
    for (auto const& target : subdirectories(root / "targets")) out.push_back(target / leaf);
    for (auto const& wheels : {root / "nvidia", root}) {
        for (auto const* part : {"cu13", "cuda_nvrtc", "nvjitlink", "cuda_runtime", "cuda_cccl"})
            out.push_back(wheels / part / leaf);
    }
    out.push_back(root);
    return out;
}

std::vector<fs::path> split(std::string_view list) {
    std::vector<fs::path> out;
    while (!list.empty()) {
        auto const colon = std::min(list.find(':'), list.size());
        if (colon > 0) out.emplace_back(list.substr(0, colon));
        list.remove_prefix(std::min(list.size(), colon + 1));
    }
    return out;
}

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

// True as soon as `take` is.
bool visit_existing(place const& from, std::span<fs::path const> directories, std::span<std::string_view const> sonames,
                    std::function<bool(candidate const&)> const& take) {
    for (auto const& soname : sonames) {
        for (auto const& directory : directories) {
            if (auto file = directory / soname; file_exists(file) && take({from, std::move(file)})) return true;
        }
    }
    return false;
}

// The build puts programs into build/bin, libraries into build/lib and, where it had to fetch one, a toolkit into
// build/cuda. An installed library has no such neighbour.
fs::path build_toolkit() {
#ifdef KILN_BUILD_CUDA_DIR
    if (directory_exists(KILN_BUILD_CUDA_DIR)) return KILN_BUILD_CUDA_DIR;
#endif
    ::Dl_info self{};
    if (::dladdr(reinterpret_cast<void const*>(&build_toolkit), &self) == 0 || self.dli_fname == nullptr) return {};
    std::error_code failed;
    auto const file = fs::canonical(self.dli_fname, failed);
    auto toolkit = file.parent_path().parent_path() / "cuda";
    return !failed && directory_exists(toolkit / "nvidia") ? toolkit : fs::path{};
}

bool holds_cccl(fs::path const& directory) {
    return file_exists(directory / "cuda" / "std" / "version") || file_exists(directory / "cub" / "version.cuh");
}

bool holds_cuda(fs::path const& directory) { return file_exists(directory / "cuda_fp16.h"); }

}  // namespace

search_environment search_environment::process(base::config const& settings) {
    search_environment out;
    out.kiln_cuda_path = settings.text("KILN_CUDA_PATH");
    out.kiln_nvrtc = settings.text("KILN_NVRTC");
    out.cuda_home = variable("CUDA_HOME");
    out.virtual_env = variable("VIRTUAL_ENV");
    out.conda_prefix = variable("CONDA_PREFIX");
    out.path = variable("PATH");
    out.home = variable("HOME");
    out.pyenv_root = variable("PYENV_ROOT");
    out.pyenv_version = variable("PYENV_VERSION");
    out.ld_library_path = variable("LD_LIBRARY_PATH");
    out.build_cuda = build_toolkit();
    return out;
}

std::string_view name_of(place_kind kind) noexcept {
    switch (kind) {
        case place_kind::kiln_nvrtc: return "KILN_NVRTC";
        case place_kind::kiln_cuda_path: return "KILN_CUDA_PATH";
        case place_kind::cuda_home: return "CUDA_HOME";
        case place_kind::loader_path: return "loader path";
        case place_kind::usr_local: return "/usr/local/cuda";
        case place_kind::pip: return "pip";
        case place_kind::conda: return "conda";
        case place_kind::build: return "build";
    }
    return "unknown";
}

std::string place::text() const {
    if (kind == place_kind::loader_path || root == name_of(kind)) return std::string{name_of(kind)};
    return fmt::format("{} ({})", name_of(kind), root.string());
}

struct library_search::lazy_places {
    std::once_flag once;
    std::vector<place> found;
};

library_search::library_search(search_environment environment) : environment_{std::move(environment)} {
    auto const& e = environment_;
    // Absolute, because what is found here is opened by workers, whose working directory is another.
    if (!e.kiln_cuda_path.empty()) {
        near_.push_back({place_kind::kiln_cuda_path, made_absolute(e.kiln_cuda_path)});
        return;
    }
    if (!e.cuda_home.empty()) near_.push_back({place_kind::cuda_home, made_absolute(e.cuda_home)});
    near_.push_back({place_kind::loader_path, {}});
    near_.push_back({place_kind::usr_local, e.root / "usr/local/cuda"});
    far_ = std::make_shared<lazy_places>();
}

std::vector<place> const& library_search::far_places() const {
    static std::vector<place> const none;
    if (far_ == nullptr) return none;
    std::call_once(far_->once, [this] {
        auto const& e = environment_;
        auto& out = far_->found;
        for (auto& site : python_places(e)) out.push_back({place_kind::pip, std::move(site)});
        if (!e.conda_prefix.empty()) out.push_back({place_kind::conda, e.conda_prefix});
        if (!e.build_cuda.empty()) out.push_back({place_kind::build, e.build_cuda});
    });
    return far_->found;
}

std::vector<place> library_search::places() const {
    auto out = near_;
    out.insert(out.end(), far_places().begin(), far_places().end());
    return out;
}

void library_search::visit_places(std::function<bool(place const&)> const& visit) const {
    if (std::ranges::any_of(near_, visit)) return;
    static_cast<void>(std::ranges::any_of(far_places(), visit));
}

void library_search::visit_candidates(std::span<std::string_view const> sonames,
                                      std::function<bool(candidate const&)> const& take) const {
    visit_places([&](place const& from) {
        if (from.kind != place_kind::loader_path) return visit_existing(from, layouts(from.root, "lib"), sonames, take);
        return std::ranges::any_of(sonames, [&](std::string_view soname) {
            return std::ranges::any_of(on_loader_path(soname), [&](auto const& file) { return take({from, file}); });
        });
    });
}

std::vector<candidate> library_search::candidates(std::span<std::string_view const> sonames) const {
    std::vector<candidate> out;
    visit_candidates(sonames, [&](candidate const& c) { return out.push_back(c), false; });
    return out;
}

std::vector<fs::path> library_search::on_loader_path(std::string_view soname) const {
    std::vector<fs::path> out;
    auto const add = [&](fs::path const& file) {
        if (file_exists(file)) out.push_back(made_absolute(file));
    };
    for (auto const& directory : split(environment_.ld_library_path)) add(directory / soname);
    auto const& root = environment_.root;
    if (auto const cache = base::read_file(root / "etc/ld.so.cache", std::size_t{64} << 20); cache && *cache) {
        fs::path const file = look_in_loader_cache(base::as_text(**cache), soname);
        if (!file.empty()) add(root / file.relative_path());
    }
    for (auto const* directory : {"lib", "usr/lib", "lib64", "usr/lib64"}) add(root / directory / soname);
    return out;
}

fs::path library_search::named_nvrtc() const {
    return environment_.kiln_nvrtc.empty() ? fs::path{} : made_absolute(environment_.kiln_nvrtc);
}

fs::path library_search::named_toolkit() const {
    return environment_.kiln_cuda_path.empty() ? fs::path{} : near_.front().root;
}

fs::path library_search::absent_toolkit() const {
    auto named = named_toolkit();
    return named.empty() || directory_exists(named) ? fs::path{} : named;
}

namespace {

// The roots of the toolkits a library may be part of, nearest first: it lies in lib64/, in targets/x86_64-linux/lib/, or in
// nvidia/cuda_nvrtc/lib/ of wheels.
std::vector<place> roots_of(fs::path const& library) {
    std::error_code failed;
    auto file = fs::canonical(library, failed);
    if (failed) file = library;
    std::vector<place> out;
    auto root = file.parent_path();
    for (int up = 0; up < 3 && root.has_relative_path(); ++up)
        out.push_back({place_kind::kiln_nvrtc, root = root.parent_path()});
    return out;
}

}  // namespace

std::vector<include_finding> library_search::find_includes() const {
    std::optional<include_finding> cccl;
    std::optional<include_finding> cuda;
    auto const look_at = [&](place const& from) {
        if (from.kind == place_kind::loader_path) return false;
        for (auto const& directory : layouts(from.root, "include")) {
            if (!cuda && holds_cuda(directory)) cuda = {from, directory, "cuda"};
            for (auto const& inner : {directory / "cccl", directory}) {
                if (!cccl && holds_cccl(inner)) cccl = {from, inner, "cccl"};
            }
            if (cuda && cccl) return true;
        }
        return false;
    };
    // Headers of one version and a compiler of another do not always go together.
    if (auto const named = named_nvrtc(); named.empty() || !std::ranges::any_of(roots_of(named), look_at))
        visit_places(look_at);
    std::vector<include_finding> out;
    if (cccl) out.push_back(*cccl);
    if (cuda) out.push_back(*cuda);
    return out;
}

std::vector<fs::path> library_search::toolkit_includes() const {
    std::vector<fs::path> out;
    for (auto& found : find_includes()) {
        if (std::ranges::find(out, found.directory) == out.end()) out.push_back(std::move(found.directory));
    }
    return out;
}

std::string library_search::tried() const {
    std::string out;
    for (auto const& from : places()) {
        bool const missing = from.kind != place_kind::loader_path && !directory_exists(from.root);
        out += fmt::format("{}{}{}", out.empty() ? "" : ", ", from.text(), missing ? " [no such directory]" : "");
    }
    auto const& e = environment_;
    if (e.kiln_cuda_path.empty() && e.cuda_home.empty()) out += "; CUDA_HOME and KILN_CUDA_PATH are not set";
    return out;
}

}  // namespace kiln::cuda
