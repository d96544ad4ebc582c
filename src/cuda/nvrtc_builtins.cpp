// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvrtc_builtins.hpp"

#include "base/digest.hpp"
#include "base/directory.hpp"
#include "cuda/file_content.hpp"
#include "cuda/loaded_library.hpp"
#include "cuda/loader_choice.hpp"

#include <algorithm>
#include <set>

namespace kiln::cuda {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view name_of_builtins = "libnvrtc-builtins.so";

// Links among them lead to one file. All of them or an error: some of them would be another compiler.
result<std::set<fs::path>> builtins_in(fs::path const& directory) {
    std::vector<fs::path> named;
    KILN_CHECK(base::for_each_name(directory, [&](std::string_view name) {
        if (name.starts_with(name_of_builtins)) named.push_back(directory / name);
    }));
    std::set<fs::path> out;
    for (auto const& path : named) {
        std::error_code why;
        auto file = fs::canonical(path, why);
        if (why == std::errc::no_such_file_or_directory) continue;  // a link to nothing
        if (!why && fs::is_regular_file(file, why)) out.insert(std::move(file));
        if (why) return io_error(path.native(), why.value());
    }
    return out;
}

// "libnvrtc-builtins.so.13.0": what an NVRTC asks for.
bool is_asked_for(std::string_view name) {
    if (!name.starts_with(name_of_builtins)) return false;
    auto const version = name.substr(name_of_builtins.size());
    return std::ranges::count(version, '.') == 2 && version.find_first_not_of(".0123456789") == version.npos;
}

}  // namespace

result<nvrtc_builtins> find_builtins(fs::path const& nvrtc) {
    std::error_code ignored;
    for (auto const& directory : {nvrtc.parent_path(), fs::canonical(nvrtc, ignored).parent_path()}) {
        KILN_TRY(auto const files, builtins_in(directory));
        if (files.empty()) continue;
        std::set<std::string> contents;
        for (auto const& file : files) {
            KILN_TRY(auto content, content_of(file));
            contents.insert(std::move(content));
        }
        if (contents.size() == 1) return nvrtc_builtins{directory, *contents.begin(), {}};
        base::key_builder all{"kiln.builtins.v1"};
        for (auto const& content : contents) all.add("content", content);
        return nvrtc_builtins{directory, all.finish().hex(), {}};
    }
    return fail(errc::not_found,
                "{}: there is no {} beside it, and NVRTC compiles nothing without; install both from one place",
                nvrtc.native(), name_of_builtins);
}

result<nvrtc_builtins> builtins_in_use(fs::path const& nvrtc) {
    KILN_TRY(auto out, find_builtins(nvrtc));
    std::set<std::string> names;
    KILN_CHECK(base::for_each_name(out.directory, [&](std::string_view name) {
        if (is_asked_for(name)) names.emplace(name);
    }));
    base::key_builder all{"kiln.builtins.elsewhere.v1"};
    all.add("beside", out.content);
    for (auto const& name : names) {
        auto const usual = out.directory / name;
        auto const chosen = loaders_choice(nvrtc, name);
        std::error_code ignored;
        if (chosen.empty() || fs::equivalent(chosen, usual, ignored)) continue;
        KILN_TRY(auto const content, content_of(chosen));
        KILN_TRY(auto const expected, content_of(usual));
        if (content == expected) continue;
        out.elsewhere.push_back(chosen);
        if (names.size() == 1) out.content = content;  // as if it lay beside
        else all.add("name", name).add("content", content);
    }
    if (!out.elsewhere.empty() && names.size() > 1) out.content = all.finish().hex();
    return out;
}

result<void> open_builtins(nvrtc_builtins const& found, int major, int minor) {
    auto const soname = fmt::format("{}.{}.{}", name_of_builtins, major, minor);
    auto const file = found.directory / soname;
    KILN_TRY(auto const wanted, content_of(file));
    if (auto const taken = loaded_under(soname); !taken.empty()) {
        KILN_TRY(auto const present, content_of(taken));
        if (present == wanted) return {};
        return fail(errc::unsupported, "{}: this process has {} loaded already, and NVRTC would be given that one",
                    file.native(), taken.native());
    }
    KILN_CHECK(open_library({{}, file}));
    return {};
}

}  // namespace kiln::cuda
