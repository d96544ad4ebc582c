// SPDX-License-Identifier: Apache-2.0
#include "intercept/program_name.hpp"

#include "base/files.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <unistd.h>

namespace kiln::intercept {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t most_name = 60;

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Who says nothing by its own name: what it was given to run does.
bool is_interpreter(std::string_view name) {
    constexpr std::array known{"python"sv, "pypy"sv, "julia"sv, "perl"sv, "ruby"sv, "node"sv, "sh"sv, "bash"sv};
    return std::ranges::any_of(known, [&](std::string_view one) {
        return name.starts_with(one) && name.substr(one.size()).find_first_not_of("0123456789.") == name.npos;
    });
}

std::string_view take_argument(std::string_view& rest) {
    auto const end = rest.find('\0');
    auto const out = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    return out;
}

}  // namespace

std::string program_name(std::string_view arguments) {
    std::string out{last_part(take_argument(arguments))};
    if (is_interpreter(out)) {
        // "-m module" names it too; another option may have a value of its own, which is no name.
        auto script = take_argument(arguments);
        if (script == "-m") script = take_argument(arguments);
        if (!script.empty() && !script.starts_with('-')) (out += ' ') += last_part(script);
    }
    std::ranges::replace_if(
        out, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    return out.substr(0, most_name);
}

std::string name_of_this_program() {
    auto const fd = base::open_file("/proc/self/cmdline", O_RDONLY);
    std::array<char, 4096> text{};
    auto const size = fd ? ::read(fd->get(), text.data(), text.size()) : -1;
    return size <= 0 ? std::string{} : program_name({text.data(), static_cast<std::size_t>(size)});
}

}  // namespace kiln::intercept
