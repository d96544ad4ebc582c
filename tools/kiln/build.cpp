// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_state.hpp"
#include "progress.hpp"
#include "unit_arguments.hpp"

#include <kiln/version.hpp>

namespace kiln::cli {

namespace {

struct build_arguments {
    unit_arguments what;
    std::string output;
    std::string sign;
    std::string title;
    bool as_json = false;
};

struct item {
    unit const* of = nullptr;
    target for_target;
    std::optional<result<obtained>> answer;
};

result<store::entry_ptr> entry_of(engine::state& s, item const& i) {
    KILN_TRY(auto const order, s.order_for(*i.of, i.for_target));
    auto copy = *(*i.answer)->what;
    return store::entry_ptr{engine_detail::entry_for(order, copy, s.producer())};
}

json describe(item const& i) {
    json out{{"unit", i.of->name}, {"target", i.for_target.arch.name()}, {"kind", name_of(i.for_target.kind)}};
    auto const& answer = *i.answer;
    if (answer) out.update({{"from", name_of(answer->from)}, {"ms", answer->ms}, {"bytes", answer->what->image.size()}, {"key", answer->what->key}});
    else out["error"] = answer.error().message();
    return out;
}

result<void> write_bundle(build_arguments const& a, engine::state& s, std::vector<item> const& items) {
    store::bundle_writer writer;
    writer.set("title", a.title.empty() ? a.output : a.title);
    writer.set("producer", s.producer());
    for (auto const& i : items) {
        if (!*i.answer) continue;
        KILN_TRY(auto const entry, entry_of(s, i));
        KILN_CHECK(writer.add(*entry));
    }
    if (a.sign.empty()) return writer.write(a.output);
    KILN_TRY(auto const key, store::private_key::load(a.sign));
    return writer.write(a.output, &key);
}

int run(build_arguments const& a) {
    auto const units = a.what.units().value();
    auto const targets = a.what.targets().value();
    if (!a.sign.empty()) (void)store::private_key::load(a.sign).value();  // before the work, not after it
    std::vector<item> items;
    for (auto const& u : units) {
        for (auto const& t : targets) items.push_back({&u, t, {}});
    }
    engine e{a.what.engine()};
    {
        auto const bar = std::make_shared<progress>("build", items.size());
        std::vector<pending<obtained>> waiting;
        for (auto const& i : items) {
            waiting.push_back(e.artifact(*i.of, i.for_target));
            waiting.back().then([bar, name = i.of->name, arch = i.for_target.arch.name()](result<obtained> const& got) {
                bar->step(fmt::format("{} {} {}", name, arch, got ? name_of(got->from) : "failed"));
            });
        }
        for (std::size_t n = 0; n < items.size(); ++n) items[n].answer = waiting[n].wait_sync(std::chrono::hours{24});
    }
    std::size_t bad = 0;
    for (auto const& i : items) {
        if (*i.answer) continue;
        ++bad;
        complain(i.answer->error());
    }
    // A bundle with what did succeed is still of use; the exit status and the report say that it is not whole.
    if (bad < items.size()) write_bundle(a, e.internals(), items).value();
    e.flush_sync();
    if (a.as_json) {
        json list = json::array();
        for (auto const& i : items) list.push_back(describe(i));
        print_json(json{{"bundle", a.output}, {"artifacts", items.size() - bad}, {"failed", bad}, {"items", std::move(list)}});
    } else {
        print(fmt::format("{}: {} of {} artifacts ({} units, {} targets){}\n", bad < items.size() ? a.output : "no bundle written", items.size() - bad,
                          items.size(), units.size(), targets.size(), a.sign.empty() ? "" : ", signed"));
    }
    return bad == 0 ? ok : failed;
}

}  // namespace

void add_build(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<build_arguments>();
    auto* const app = add_command(root, "build");
    arguments->what.add_to(*app);
    app->add_option("-o,--output", arguments->output, "bundle to write")->required();
    app->add_option("--sign", arguments->sign, "private key");
    app->add_option("--title", arguments->title, "what the bundle is called");
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
