// SPDX-License-Identifier: Apache-2.0
#include "engine/pack.hpp"
#include "misuse.hpp"

namespace kiln::cli {

namespace {

std::string joined(std::vector<std::string> const& texts) {
    std::string out;
    for (auto const& t : texts) out += (out.empty() ? "" : " ") + t;
    return out;
}

// As many as fit on a screen: --json has all.
std::string some_of(std::vector<std::string> const& texts) {
    constexpr std::size_t most = 4;
    if (texts.size() <= most) return joined(texts);
    return fmt::format("{} and {} more", joined({texts.begin(), texts.begin() + most - 1}), texts.size() - (most - 1));
}

int list_packs(std::string const& pack, bool as_json) {
    if (!pack.empty()) (void)meant(engine_detail::pack_named(pack));
    json all = json::array();
    std::vector<std::vector<std::string>> rows{{"name", "kind", "types", "operator", "kernels", "pack"}};
    for (auto const& s : catalogue()) {
        if (!pack.empty() && s.pack != pack) continue;
        all.push_back({{"name", s.name},
                       {"kind", s.kind},
                       {"types", s.types},
                       {"operator", s.by},
                       {"kernels", s.kernels},
                       {"pack", s.pack}});
        rows.push_back({s.name, s.kind, joined(s.types), s.by.empty() ? "-" : s.by, some_of(s.kernels), s.pack});
    }
    if (as_json) print_json(all);
    else print(table(rows));
    return ok;
}

}  // namespace

void add_list(CLI::App& root, std::vector<command>& commands) {
    struct list_arguments {
        std::string pack;
        bool as_json = false;
    };
    auto arguments = std::make_shared<list_arguments>();
    auto* const app = add_command(root, "list");
    app->add_option("--pack", arguments->pack, "only this pack");
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return list_packs(arguments->pack, arguments->as_json); }});
}

}  // namespace kiln::cli
