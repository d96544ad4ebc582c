// SPDX-License-Identifier: Apache-2.0
// Benchmarks are programs of their own: this finds them, and becomes the one asked for.
#include "base/own_file.hpp"
#include "command.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace kiln::cli {

namespace {

constexpr std::string_view prefix = "bench_";
constexpr std::string_view remedy =
    "in Kiln's tree 'make bench' builds them in build-release/bin, beside a kiln of their own; an installed Kiln has "
    "those that were built before it was installed";

// Beside this program, as in a build; in libexec, as installed.
std::vector<std::filesystem::path> bench_folders() {
    auto const own = base::program_file().parent_path();
    if (own.empty()) return {};
    return {own, own.parent_path() / "libexec" / "kiln"};
}

struct bench_program {
    std::string name;
    std::filesystem::path file;
};

std::vector<bench_program> bench_programs() {
    std::vector<bench_program> out;
    for (auto const& folder : bench_folders()) {
        std::error_code ignored;
        for (auto const& entry : std::filesystem::directory_iterator{folder, ignored}) {
            auto const name = entry.path().filename().native();
            if (!name.starts_with(prefix) || ::access(entry.path().c_str(), X_OK) != 0) continue;
            auto plain = name.substr(prefix.size());
            if (std::ranges::find(out, plain, &bench_program::name) == out.end())
                out.push_back({std::move(plain), entry.path()});
        }
    }
    std::ranges::sort(out, {}, &bench_program::name);
    return out;
}

int list(bool as_json) {
    auto const all = bench_programs();
    if (as_json) {
        json rows = json::array();
        for (auto const& b : all) rows.push_back({{"name", b.name}, {"program", b.file.native()}});
        print_json(rows);
        return ok;
    }
    if (all.empty()) print(fmt::format("no benchmark is built; {}\n", remedy));
    for (auto const& b : all) print(b.name + "\n");
    return ok;
}

int become(std::vector<std::string> words) {
    auto const all = bench_programs();
    auto const at = std::ranges::find(all, words.front(), &bench_program::name);
    if (at == all.end()) {
        std::string known;
        for (auto const& b : all) known += (known.empty() ? "; there are: " : ", ") + b.name;
        complain(fmt::format("there is no benchmark '{}' beside this program{}; {}", words.front(), known, remedy));
        return failed;
    }
    words.front() = at->file.native();
    std::vector<char*> arguments;
    for (auto& w : words) arguments.push_back(w.data());
    arguments.push_back(nullptr);
    ::execv(arguments.front(), arguments.data());
    complain(fmt::format("{}: {}", words.front(), std::strerror(errno)));
    return failed;
}

}  // namespace

void add_bench(CLI::App& root, std::vector<command>& commands) {
    auto as_json = std::make_shared<bool>(false);
    auto* const app = add_command(root, "bench");
    app->add_flag("--json", *as_json, "JSON on stdout");
    app->prefix_command();  // what follows the name belongs to the benchmark
    commands.push_back({app, [app, as_json] {
                            auto words = app->remaining();
                            return words.empty() ? list(*as_json) : become(std::move(words));
                        }});
}

}  // namespace kiln::cli
