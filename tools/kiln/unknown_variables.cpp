// SPDX-License-Identifier: Apache-2.0
#include "unknown_variables.hpp"

#include "base/config.hpp"
#include "command.hpp"

#include <algorithm>
#include <array>
#include <set>

extern char** environ;

namespace kiln::cli {

namespace {

// What Kiln's own programs tell one another, and what builds and tests of Kiln are told.
bool is_of_ours(std::string_view name) {
    constexpr std::array<std::string_view, 5> prefixes{"KILN_RUN_", "KILN_AUDIT_", "KILN_TEST_", "KILN_SETUP_",
                                                       "KILN_FAKE_"};
    return std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::vector<std::string> unknown_variables() {
    std::vector<std::string> known{"KILN_CONFIG", "KILN_REMOTE_TOKEN"};
    for (auto const& k : base::knobs()) known.emplace_back(k.variable);
    std::set<std::string> unknown;
    for (char** at = environ; *at != nullptr; ++at) {
        std::string_view const entry{*at};
        auto const name = entry.substr(0, entry.find('='));
        if (name.starts_with("KILN_") && !is_of_ours(name) && std::ranges::find(known, name) == known.end())
            unknown.emplace(name);
    }
    std::vector<std::string> out;
    for (auto const& name : unknown)
        out.push_back(fmt::format("{} is set and is not a setting{}", name, did_you_mean(name, known)));
    return out;
}

}  // namespace kiln::cli
