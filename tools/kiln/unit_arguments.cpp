// SPDX-License-Identifier: Apache-2.0
#include "unit_arguments.hpp"

#include "arch_words.hpp"
#include "base/files.hpp"

#include <algorithm>
#include <filesystem>
#include <unistd.h>

namespace kiln::cli {

void unit_arguments::add_to(CLI::App& app, files_are need) {
    app.add_option("FILE", files, "CUDA C++ sources")->required(need == files_are::required);
    app.add_option("--arch,-a", archs, "architectures")->delimiter(',');
    app.add_option("--name,-n", names, "entry points or expressions");
    app.add_option("-D,--define", defines, "macro");
    app.add_option("-U,--undefine", undefines, "macro");
    app.add_option("-I,--include", includes, "directory");
    app.add_option("--std", standard, "language standard");
    app.add_option("--kind,-k", kind, "cubin, ptx or ltoir");
    app.add_option("--option,-X", options, "an NVRTC option");
    app.add_option("--export", exports, "constant to carry");
    app.add_option("--licence", licence, "licence of the sources");
    app.add_option("--jobs,-j", jobs, "compile processes")->check(CLI::Range(0, 1024));
}

namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 20;

result<base::bytes> text_of(std::string const& file) {
    if (file == "-") return base::read_all(STDIN_FILENO, most_bytes);
    KILN_TRY(auto text, base::read_file(file, most_bytes));
    if (!text) return fail(errc::not_found, "{}: no such file", file);
    return *std::move(text);
}

// "conv.cu:conv<float, 3>" is of conv.cu, by the file as it was given or by its name. A colon of "::" divides nothing.
std::optional<std::pair<std::string, std::string>> divided(std::string const& name,
                                                           std::vector<std::string> const& files) {
    for (auto const& file : files) {
        for (auto const& prefix : {file, std::filesystem::path{file}.filename().native()}) {
            if (name.size() > prefix.size() + 1 && name.starts_with(prefix) && name[prefix.size()] == ':' &&
                name[prefix.size() + 1] != ':')
                return std::pair{prefix, name.substr(prefix.size() + 1)};
        }
    }
    return std::nullopt;
}

// No expression has a single colon but one of "?:": what stands before it was meant to be a file.
result<void> check_files_of(std::vector<std::string> const& names, std::vector<std::string> const& files) {
    for (auto const& name : names) {
        auto at = name.find(':');
        while (at != name.npos && name.substr(at).starts_with("::")) at = name.find(':', at + 2);
        if (at == name.npos || name.find('?') < at || divided(name, files)) continue;
        return fail(errc::invalid_argument, "'{}': there is no '{}' among the files: {}", name, name.substr(0, at),
                    fmt::join(files, ", "));
    }
    return {};
}

// The names that are of this file: those without one are of every file.
std::vector<std::string> names_for(std::string const& file, std::vector<std::string> const& names,
                                   std::vector<std::string> const& files) {
    std::vector<std::string> out;
    for (auto const& name : names) {
        auto const parts = divided(name, files);
        if (!parts) out.push_back(name);
        else if (parts->first == file || parts->first == std::filesystem::path{file}.filename().native())
            out.push_back(parts->second);
    }
    return out;
}

std::string name_of_file(std::filesystem::path const& path) {
    if (path == "-") return "stdin";
    return path.extension() == ".cu" ? path.stem().native() : path.filename().native();
}

}  // namespace

result<std::vector<unit>> unit_arguments::units() const {
    std::vector<unit> out;
    if (std::ranges::count(files, "-") > 1) return fail(errc::invalid_argument, "'-' can be read once only");
    KILN_CHECK(check_files_of(names, files));
    KILN_CHECK(check_files_of(exports, files));
    for (auto const& directory : includes) {
        std::error_code ignored;
        if (!std::filesystem::is_directory(directory, ignored))
            complain(fmt::format("-I {}: there is no such directory", directory));
    }
    for (auto const& file : files) {
        std::filesystem::path const path{file};
        KILN_TRY(auto const text, text_of(file));
        unit u;
        u.name = name_of_file(path);
        u.source = std::string{base::as_text(text)};
        u.kernels = names_for(file, names, files);
        // "." stands for the working directory: a file without a folder still has one.
        u.directory = path.has_parent_path() ? path.parent_path().native() : ".";
        u.include_dirs = includes;
        for (auto const& d : defines) u.options.push_back("-D" + d);
        for (auto const& d : undefines) u.options.push_back("-U" + d);
        if (!standard.empty()) u.options.push_back("--std=" + standard);
        u.options.insert(u.options.end(), options.begin(), options.end());
        u.uncached_options = uncached_options;
        u.exports = names_for(file, exports, files);
        u.licence = licence;
        out.push_back(std::move(u));
    }
    return out;
}

result<std::vector<target>> unit_arguments::targets() const {
    std::optional<artifact_kind> what;
    if (!kind.empty()) {
        KILN_TRY(what, parse_kind(kind));
    }
    KILN_TRY(auto out, targets_of_words(archs, what));
    if (out.empty()) {
        KILN_TRY(auto const t, target::make(arch_of_this_machine().arch, what.value_or(artifact_kind::cubin)));
        out.push_back(t);
    }
    return out;
}

engine_options unit_arguments::engine() const {
    engine_options out;
    if (jobs > 0) out.settings.emplace_back("KILN_WORKERS", std::to_string(jobs));
    return out;
}

}  // namespace kiln::cli
