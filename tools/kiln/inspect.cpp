// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "compile/job.hpp"
#include "store/bundle.hpp"

namespace kiln::cli {

namespace {

struct inspected {
    store::summary about;
    std::optional<artifact> decoded;
};

std::vector<inspected> read_rows(store::bundle_tier& bundle) {
    std::vector<inspected> out;
    bundle.for_each([&](store::summary const& s) { out.push_back({s, {}}); }).value();
    for (auto& r : out) {
        auto const found = bundle.find(r.about.about.at, {});
        if (!found || !found->hit) continue;
        if (auto a = compile::decode_artifact(found->hit->payload)) r.decoded = *std::move(a);
    }
    return out;
}

json kernels_of(inspected const& r) {
    json out = json::array();
    if (r.decoded) {
        for (auto const& k : r.decoded->kernels) out.push_back(k.name);
    }
    return out;
}

int inspect_file(std::string const& file, bool as_json) {
    auto const bundle = store::bundle_tier::open(file).value();
    auto const& info = bundle->info();
    auto const rows = read_rows(*bundle);
    if (as_json) {
        json list = json::array();
        for (auto const& r : rows) {
            auto const& l = r.about.about;
            list.push_back({{"unit", l.name},
                            {"target", l.target},
                            {"kind", l.kind},
                            {"bytes", r.about.bytes},
                            {"toolchain", l.toolchain},
                            {"producer", l.producer},
                            {"licence", l.licence},
                            {"key", l.at.key.hex()},
                            {"readable", r.decoded.has_value()},
                            {"kernels", kernels_of(r)}});
        }
        print_json(json{{"file", info.origin},
                        {"format", info.format},
                        {"bytes", info.file_bytes},
                        {"artifacts", info.entries},
                        {"signature", store::name_of(info.signed_by)},
                        {"key", info.key},
                        {"items", std::move(list)}});
        return ok;
    }
    print(fmt::format("{}: format {}, {}, {}, {}{}{}\n\n", info.origin, info.format, bytes_text(info.file_bytes),
                      count_of(info.entries, "artifact"), info.key.empty() ? "not signed" : "signed by key ", info.key,
                      info.key.empty() ? "" : " (check with kiln verify --key)"));
    std::vector<std::vector<std::string>> lines{{"unit", "target", "kind", "stored", "kernels", "compiler", "licence"}};
    for (auto const& r : rows) {
        auto const& l = r.about.about;
        lines.push_back({l.name, l.target, l.kind, bytes_text(r.about.bytes),
                         r.decoded ? std::to_string(r.decoded->kernels.size()) : "unreadable",
                         r.decoded ? r.decoded->compiler : "?", l.licence.empty() ? "-" : l.licence});
    }
    print(table(lines));
    return ok;
}

}  // namespace

void add_inspect(CLI::App& root, std::vector<command>& commands) {
    struct inspect_arguments {
        std::string file;
        bool as_json = false;
    };
    auto arguments = std::make_shared<inspect_arguments>();
    auto* const app = add_command(root, "inspect");
    app->add_option("BUNDLE", arguments->file, "bundle")->required();
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return inspect_file(arguments->file, arguments->as_json); }});
}

}  // namespace kiln::cli
