// SPDX-License-Identifier: Apache-2.0
// Where the worker program is: next to what uses it, however Kiln was installed.
#include "compile/worker_pool.hpp"

#include "base/own_file.hpp"

#include <algorithm>
#include <unistd.h>

namespace kiln::compile {

namespace {

namespace fs = std::filesystem;

bool can_run(fs::path const& program) {
    std::error_code ignored;
    return fs::is_regular_file(program, ignored) && ::access(program.c_str(), X_OK) == 0;
}

// libkiln, or the program that has it linked in.
fs::path own_file() { return base::file_with(reinterpret_cast<void const*>(&worker_pool::find_worker)); }

std::vector<fs::path> places() {
    std::vector<fs::path> out;
    auto add = [&](fs::path const& directory) {
        auto program = (directory / "kiln-worker").lexically_normal();
        if (std::find(out.begin(), out.end(), program) == out.end()) out.push_back(std::move(program));
    };
    if (auto const library = own_file().parent_path(); !library.empty()) {
        add(library);
        add(library / "../bin");
        add(library / "../libexec/kiln");
        add(library / "../../bin");  // lib/<architecture>/ as on Debian
        add(library / "../../libexec/kiln");
    }
    if (auto const program = base::program_file().parent_path(); !program.empty()) {
        add(program);
        add(program / "../libexec/kiln");
    }
    return out;
}

result<fs::path> named_by(std::string_view who, fs::path const& program) {
    if (can_run(program)) return fs::absolute(program);
    return fail(errc::not_found, "{} names '{}', which is not a program that can be run", who, program.native());
}

}  // namespace

result<fs::path> worker_pool::find_worker(fs::path const& configured) {
    if (!configured.empty()) return named_by("KILN_WORKER", configured);
    std::string looked;
    auto const own = own_file();
    for (auto const& program : places()) {
        bool const is_there = can_run(program);
        if (is_there && base::belongs_to(own, program)) return program;
        looked += (looked.empty() ? "" : ", ") + program.native();
        if (is_there) looked += " (others could have put it there, so it is not run)";
    }
    return fail(errc::not_found, "kiln-worker was not found; looked for {}; set KILN_WORKER to its path", looked);
}

}  // namespace kiln::compile
