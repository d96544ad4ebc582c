// SPDX-License-Identifier: Apache-2.0
// Whose line it is: the first frame of a stack that is neither a library's nor what compilers put between a launch and its kernel.
#include "audit/model.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cxxabi.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <set>

namespace kiln::audit {

namespace {

// "file\tline\tfunction", of a native frame with "\tobject"; a native frame without a line is "object\t+offset\t".
struct stack_frame {
    std::string_view file, function, object;
    std::string label;
    int line = 0;
    [[nodiscard]] std::string text() const {
        return function.empty() ? label : fmt::format("{} in {}", label, function);
    }
};

bool parse_frame(std::string_view text, stack_frame& out) {
    std::array<std::string_view, 4> words;
    std::size_t n = 0;
    for (; n < words.size(); ++n) {
        auto const tab = n + 1 < words.size() ? text.find('\t') : text.npos;
        words[n] = text.substr(0, tab);
        if (tab == text.npos) break;
        text.remove_prefix(tab + 1);
    }
    if (n < 2) return false;
    out = {.file = words[0], .function = words[2], .object = words[3], .label = {}};
    auto const number = words[1];
    if (number.starts_with('+')) {
        out.object = words[0];
        out.label = fmt::format("{}+0x{}", base_name(words[0]), number.substr(1));
        return true;
    }
    std::from_chars(number.data(), number.data() + number.size(), out.line);
    bool const has_only_a_name = out.line == 0 && !out.object.empty();
    out.label = has_only_a_name ? base_name(out.object) : fmt::format("{}:{}", base_name(out.file), out.line);
    return true;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Also what torch.compile writes, and Kiln's headers, whose functions are compiled into who uses them.
bool is_of_a_library(stack_frame const& f) {
    if (has(f.file, "site-packages") || has(f.file, "dist-packages") || has(f.file, "lib/python3") ||
        has(f.file, "torchinductor") || has(f.file, "/include/kiln/") || f.file.starts_with("<"))
        return true;
    for (auto const* const folder : {"/usr/include/", "/usr/lib", "/usr/local/cuda", "/lib/", "/lib64/"})
        if (f.file.starts_with(folder) || f.object.starts_with(folder)) return true;
    return base_name(f.object).starts_with("libkiln");
}

// A launch goes through a stub, which is called by a function that has the kernel's name and line. The kernel's name; empty: no stub.
std::string kernel_of_stub(std::string_view function) {
    constexpr std::string_view begin = "__device_stub_";
    if (!function.starts_with(begin)) return {};
    std::string const mangled{function.substr(begin.size(), function.find('(') - begin.size())};
    std::unique_ptr<char, void (*)(void*)> const name{abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, nullptr),
                                                      std::free};
    return name ? name.get() : mangled;
}

// The runtime that is linked into a program.
bool is_of_cuda(stack_frame const& f) {
    if (f.object.empty()) return false;
    return f.function.starts_with("__cuda") || (f.line == 0 && f.function.starts_with("cuda"));
}

// The last names of a path: "b/utils.py" of "/home/ann/b/utils.py" for two.
std::string_view last_names(std::string_view path, std::size_t names) {
    auto from = path.size();
    for (; names > 0 && from != 0; --names) {
        from = path.rfind('/', from - 1);
        if (from == path.npos) return path;
    }
    return path.substr(from + 1);
}

// One file may be written in more than one way.
std::string written_alike(std::string const& path) { return std::filesystem::path{path}.lexically_normal().native(); }

// What tells each of several paths from the others: a few names from its end, or all of it. Part of another path, as compilers are given
// them, is no other file.
std::map<std::string, std::string> shortest_apart(std::set<std::string> paths) {
    constexpr std::size_t most_names = 5;
    auto const all = paths;
    std::erase_if(paths, [&](std::string const& path) {
        return !path.starts_with('/') && std::ranges::any_of(all, [&](std::string const& other) {
            return other != path && is_called(other, path);
        });
    });
    if (paths.size() < 2) return {};
    std::map<std::string, std::string> out;
    for (std::size_t names = 2; names <= most_names && out.size() < paths.size(); ++names) {
        std::map<std::string_view, std::size_t> often;
        for (auto const& path : paths) ++often[last_names(path, names)];
        for (auto const& path : paths)
            if (auto const shown = last_names(path, names); often[shown] == 1) out.try_emplace(path, shown);
    }
    for (auto const& path : paths) out.try_emplace(path, path);
    return out;
}

}  // namespace

bool is_called(std::string_view label, std::string_view name) noexcept {
    return label == name || (label.ends_with(name) && label[label.size() - name.size() - 1] == '/');
}

void tell_apart(std::vector<place>& places) {
    std::map<std::string, std::set<std::string>> by_name;
    for (auto const& p : places)
        if (!p.file.empty()) by_name[base_name(p.file)].insert(written_alike(p.file));
    std::map<std::string, std::string> shown;
    for (auto const& [name, files] : by_name)
        if (files.size() > 1) shown.merge(shortest_apart(files));
    for (auto& p : places)
        if (auto const at = shown.find(written_alike(p.file)); at != shown.end())
            p.label = fmt::format("{}:{}", at->second, p.line);
}

std::string base_name(std::string_view path) {
    auto const slash = path.rfind('/');
    return std::string{slash == path.npos ? path : path.substr(slash + 1)};
}

place place_from(std::string_view stack) {
    place out;
    bool first = true, found = false;
    std::string kernel;  // of the stub that was just passed
    auto const blame = [&](stack_frame const& f) {
        out.file = f.line > 0 || f.object.empty() ? f.file : std::string_view{};
        out.line = f.line;
        out.function = f.function;
        out.label = f.label;
    };
    stack_frame last;
    bool is_guess = false;  // a name, until a frame with a line is found
    while (!stack.empty()) {
        auto const end = stack.find('\n');
        stack_frame f;
        bool const makes_sense = parse_frame(stack.substr(0, end), f);
        stack.remove_prefix(end == stack.npos ? stack.size() : end + 1);
        if (!makes_sense) continue;
        bool const is_kernel = !kernel.empty() && f.function == kernel;
        kernel = kernel_of_stub(f.function);
        if (is_kernel || !kernel.empty() || is_of_cuda(f)) continue;
        out.stack.push_back(f.text());
        if (first) out.innermost = out.stack.back();
        bool const has_a_line = f.line > 0 || f.object.empty();
        if (!is_of_a_library(f) && (!found || (is_guess && has_a_line))) {
            if (!found) out.caller = first;
            found = true;
            is_guess = !has_a_line;
            blame(f);
        }
        last = std::move(f);
        first = false;
    }
    if (!found && !first) {  // a program on the command line, or a library alone
        out.caller = out.stack.size() == 1;
        blame(last);
    }
    return out;
}

}  // namespace kiln::audit
