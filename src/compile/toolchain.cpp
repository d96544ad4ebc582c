// SPDX-License-Identifier: Apache-2.0
#include "compile/toolchain.hpp"

#include "cuda/nvrtc_builtins.hpp"

#include <charconv>

namespace kiln::compile {

namespace {

namespace fs = std::filesystem;

// Half of a SHA-256 tells builtins apart as well as a build id tells libraries.
std::string nvrtc_text(std::string_view build_id, std::string_view builtins) {
    return fmt::format("nvrtc {} builtins {}", build_id, builtins.substr(0, 32));
}

std::string nvjitlink_text(std::string_view build_id) { return fmt::format("nvjitlink {}", build_id); }

result<tool> find_tool(cuda::library_search const& search, std::span<std::string_view const> sonames,
                       result<tool> (*identify)(fs::path const&), std::string_view remedy) {
    std::optional<tool> found;
    std::string unusable;
    search.visit_candidates(sonames, [&](cuda::candidate const& c) {
        auto here = identify(c.file);
        if (!here) unusable += fmt::format("{}{}", unusable.empty() ? "" : "; ", here.error().message());
        if (!here) return false;
        here->found = cuda::name_of(c.from.kind);
        found = *std::move(here);
        return true;
    });
    if (found) return *std::move(found);
    // What is wrong with those that are there is worth telling by itself.
    return fail(errc::not_found, "{} not found; {}; looked in: {}{}{}", fmt::join(sonames, ", "), remedy,
                search.tried(), unusable.empty() ? "" : "; ", unusable)
        .with_log(unusable);
}

int number_in(std::string_view file_name) {
    constexpr std::string_view before = ".so.";
    auto const at = file_name.find(before);
    int out = 0;
    if (at != file_name.npos)
        std::from_chars(file_name.data() + at + before.size(), file_name.data() + file_name.size(), out);
    return out;
}

}  // namespace

int major_of(fs::path const& library) {
    if (int const told = number_in(library.filename().native()); told != 0) return told;
    std::error_code none;
    return number_in(fs::canonical(library, none).filename().native());
}

result<tool> nvrtc_at(fs::path const& file) {
    auto const path = fs::absolute(file);
    KILN_TRY(auto const identity, cuda::identify_file(path));
    KILN_TRY(auto const builtins, cuda::find_builtins(path));
    return tool{path, nvrtc_text(identity.build_id, builtins.content), "by name"};
}

result<tool> nvjitlink_at(fs::path const& file) {
    auto const path = fs::absolute(file);
    KILN_TRY(auto const identity, cuda::identify_file(path));
    return tool{path, nvjitlink_text(identity.build_id), "by name"};
}

result<tool> find_nvrtc(cuda::library_search const& search) {
    if (auto const named = search.named_nvrtc(); !named.empty()) {
        auto here = nvrtc_at(named);
        if (!here) {
            auto const why = fmt::format("KILN_NVRTC={}: {}; name a libnvrtc that is there, or unset it",
                                         named.native(), here.error().message());
            return fail(errc::not_found, "{}", why).with_log(why);
        }
        here->found = cuda::name_of(cuda::place_kind::kiln_nvrtc);
        return here;
    }
    if (auto const absent = search.absent_toolkit(); !absent.empty()) {
        auto const why = fmt::format(
            "KILN_CUDA_PATH={}: no such directory; unset it, or name a toolkit ('pip install nvidia-cuda-nvrtc' brings "
            "one) or, where none is to be used, an empty directory",
            absent.native());
        return fail(errc::not_found, "{}", why).with_log(why);
    }
    auto found = find_tool(search, cuda::nvrtc_sonames, nvrtc_at,
                           "install the CUDA toolkit, or 'pip install nvidia-cuda-nvrtc', or set KILN_CUDA_PATH");
    auto const named = search.named_toolkit();
    if (found || !found.error().log().empty() || named.empty()) return found;
    // Others may be on the machine, and are not looked at.
    auto why =
        fmt::format("KILN_CUDA_PATH={} has none, and no other toolkit is looked at; unset it, or name one that has",
                    named.native());
    return error{found.error()}.with_log(std::move(why));
}

result<tool> find_nvjitlink(cuda::library_search const& search) {
    return find_tool(search, cuda::nvjitlink_sonames, nvjitlink_at,
                     "install the CUDA toolkit, or 'pip install nvidia-nvjitlink', or set KILN_CUDA_PATH");
}

toolchain_paths find_toolchain(cuda::library_search const& search) {
    toolchain_paths out;
    if (auto const nvrtc = find_nvrtc(search)) out.nvrtc = nvrtc->path;
    if (auto const nvjitlink = find_nvjitlink(search)) out.nvjitlink = nvjitlink->path;
    for (auto const& directory : search.toolkit_includes()) out.toolkit_includes.push_back(directory);
    return out;
}

std::string toolchain_text(cuda::nvrtc_api const& api) {
    return nvrtc_text(api.library.identity.build_id, api.builtins);
}
std::string toolchain_text(cuda::nvjitlink_api const& api) { return nvjitlink_text(api.library.identity.build_id); }

}  // namespace kiln::compile
